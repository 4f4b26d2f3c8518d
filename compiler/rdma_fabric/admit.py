"""May a node take work: judged from what it and the nodes that it is cabled to have right now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from rdma_fabric.checker import Judged, build, check, registry
from rdma_fabric.checker.scopes import NodeView
from rdma_fabric.findings import Finding, Severity
from rdma_fabric.inventory.types import End, Inventory
from rdma_fabric.resolve import Resolved
from rdma_fabric.settings import Deviation, deviations
from rdma_fabric.state import NodeState, Observation, differences

Word = Literal["admit", "refuse", "unknown"]
LINK = "link "
"""Facts "link PORT" of an observation: "up", or another word of the device's own."""
UP = ("up", "unknown")
"""Some virtual devices do not tell their state, and say so (Linux operstates.rst)."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that had to be judged and could not be: of a node, or of one of its ports."""

    node: str
    port: str
    why: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One node: what speaks against it, and what nobody could say."""

    node: str
    neighbours: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    down: tuple[str, ...] = ()
    """Ports whose link is not up."""
    unknown: tuple[Unread, ...] = ()

    @property
    def word(self) -> Word:
        """What is wrong goes before what is unknown."""
        if self.findings or self.down:
            return "refuse"
        return "unknown" if self.unknown else "admit"


def around(inventory: Inventory, names: Collection[str]) -> dict[str, dict[End, End]]:
    """Node -> its cabled ends and the ends that they are cabled to."""
    found: dict[str, dict[End, End]] = {name: {} for name in names}
    for link in inventory.links:
        for here, there in ((link.a, link.b), (link.b, link.a)):
            if here.node in found and there.node in inventory.nodes:
                found[here.node][here] = there
    return found


def judge(
    resolved: Resolved,
    cables: Mapping[str, Mapping[End, End]],
    observations: Mapping[str, Observation],
    failures: Mapping[str, str],
    *,
    strict: bool = False,
) -> tuple[Verdict, ...]:
    """One verdict per node of `cables`. Every node counts as active: that is what is asked."""
    asked = _active(resolved)
    plain = check(build(asked))
    judged = build(asked, observations)
    report = check(judged)
    why = _first_errors(plain.findings)
    found = []
    for name, ends in cables.items():
        peers = tuple(dict.fromkeys(end.node for end in ends.values()))
        if name in plain.rejected:
            reason = f"its intent has errors: {why.get(name, 'run `fabric check`')}"
            found.append(Verdict(name, peers, unknown=(Unread(name, "", reason),)))
            continue
        against = [one for one in report.findings if _counts(one, strict) and _touches(one, name, ends)]
        seen = observations.get(name)
        down = _down(seen, judged.views[name]) if seen else ()
        unknown = (*_unread((name, *peers), failures), *_gaps(name, ends, judged))
        found.append(Verdict(name, peers, tuple(against), down, tuple(unknown)))
    return tuple(found)


def _active(resolved: Resolved) -> Resolved:
    """The same fabric with every node in service."""
    inventory = resolved.inventory
    specs = {id(node.spec): replace(node.spec, state="active") for node in inventory.nodes.values()}
    nodes = {name: replace(node, spec=specs[id(node.spec)]) for name, node in inventory.nodes.items()}
    return replace(resolved, inventory=replace(inventory, nodes=nodes))


def _first_errors(findings: Iterable[Finding]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in findings:
        if one.severity is Severity.ERROR and not one.waived:
            for place in one.places:
                found.setdefault(place.node, f"{one.code} {one.name}: {one.message}")
    return found


@cache
def _of_devices() -> frozenset[str]:
    """Codes of the rules about what devices have: there a warning is something wrong right now."""
    return frozenset(rule.code for rule in registry.rules() if rule.family == "observed")


def _counts(one: Finding, strict: bool) -> bool:
    if one.waived or one.severity is Severity.NOTE:
        return False
    return strict or one.severity is Severity.ERROR or one.code in _of_devices()


def _touches(one: Finding, name: str, ends: Mapping[End, End]) -> bool:
    """At the node, at the other end of one of its cables, or at a whole neighbour."""
    there = set(ends.values())
    neighbours = {end.node for end in there}
    return any(
        place.node == name
        or End(place.node, place.port) in there
        or (place.node in neighbours and not place.port)
        for place in one.places
    )


def _down(seen: Observation, view: NodeView) -> tuple[str, ...]:
    facts = dict(seen.facts)
    return tuple(port.name for port in view.hw.ports if facts.get(f"{LINK}{port.name}", UP[0]) not in UP)


def _unread(names: Iterable[str], failures: Mapping[str, str]) -> Iterator[Unread]:
    for name in names:
        if name in failures:
            yield Unread(name, "", failures[name])


def _gaps(name: str, ends: Mapping[End, End], judged: Judged) -> Iterator[Unread]:
    """Settings that could not be read: any of the node, and of its neighbours those of the other ends."""
    for node in (name, *dict.fromkeys(end.node for end in ends.values())):
        seen = judged.observations.get(node)
        if seen is None:
            continue
        wanted = judged.views[node].wanted
        for one in _unknown(wanted, seen.running):
            if node == name or End(node, one.port) in ends.values():
                yield Unread(node, one.port, f"{one.title} could not be read")


def _unknown(wanted: NodeState, seen: NodeState) -> list[Deviation]:
    return [one for one in deviations(differences(wanted, seen), wanted, seen) if one.unknown]


__all__ = ["Unread", "Verdict", "around", "judge"]
