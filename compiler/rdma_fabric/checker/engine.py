"""Walks the fabric once, calls every rule once per distinct input, then blames, merges, groups and waives."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rdma_fabric.checker import registry
from rdma_fabric.checker.blame import Census, value_at
from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import (
    AnyRule,
    FabricRule,
    Hit,
    IntentRule,
    IntentView,
    LinkFacts,
    LinkRule,
    NetworkRule,
    NetworkView,
    NodeRule,
    PathRule,
    PortRule,
    PortView,
)
from rdma_fabric.checker.waivers import apply_waivers
from rdma_fabric.checker.words import grouped, places_text
from rdma_fabric.findings import Finding, Place, Position, Severity
from rdma_fabric.inventory.types import End, Link
from rdma_fabric.settings import group_of
from rdma_fabric.state import NotJudged


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on a fabric."""

    findings: tuple[Finding, ...]
    rejected: tuple[str, ...]
    """Nodes with an error of their own that is not waived."""
    affected: Mapping[str, tuple[str, ...]]
    """Other nodes that depend on a rejected one -> those rejected nodes."""
    not_judged: tuple[tuple[str, str, int], ...] = ()
    """(rule code, reason, number of distinct inputs) of checks that could not be made."""
    rules: int = 0

    def worst(self) -> Severity | None:
        """The worst severity that is not waived."""
        return max((one.severity for one in self.findings if not one.waived), default=None)


@dataclass(frozen=True, slots=True)
class _Raw:
    """A hit at one place, before merging."""

    rule: AnyRule
    hit: Hit
    place: Place
    peer: str
    position: Position | None
    severity: Severity


def check(judged: Judged, today: datetime.date | None = None) -> Report:
    """Every rule on the whole fabric; `today` decides which waivers have expired."""
    return _Engine(judged, today or datetime.datetime.now(datetime.UTC).date()).run()


@dataclass
class _Engine:
    judged: Judged
    today: datetime.date
    raw: list[_Raw] = field(default_factory=list)
    skipped: dict[tuple[str, str], int] = field(default_factory=dict)
    census: Census = field(init=False)

    def run(self) -> Report:
        self.census = Census(self.judged)
        for rule in registry.rules():
            if isinstance(rule, IntentRule):
                self._intent(rule)
            elif isinstance(rule, NodeRule):
                self._nodes(rule)
            elif isinstance(rule, PortRule):
                self._ports(rule)
            elif isinstance(rule, LinkRule):
                self._links(rule)
            elif isinstance(rule, PathRule):
                self._paths(rule)
            elif isinstance(rule, NetworkRule):
                self._networks(rule)
            elif isinstance(rule, FabricRule):
                self._fabric(rule)
        findings = grouped(_one_per_cause(self.raw), self.judged)
        findings = apply_waivers(findings, self.judged.resolved, self.today)
        rejected = _rejected(findings, self.judged)
        skipped = tuple((code, why, count) for (code, why), count in sorted(self.skipped.items()))
        return Report(
            tuple(sorted(findings, key=lambda one: (-one.severity, *one.sort_key()))),
            rejected,
            _affected(rejected, self.judged),
            skipped,
            len(registry.rules()),
        )

    # -- calls

    def _call(self, rule: Any, *arguments: Any) -> tuple[Any, ...]:
        try:
            return tuple(rule.check(*arguments))
        except NotJudged as reason:
            key = (rule.code, str(reason))
            self.skipped[key] = self.skipped.get(key, 0) + 1
            return ()

    def _add(
        self, rule: AnyRule, hit: Hit, place: Place, peer: str = "", position: Position | None = None
    ) -> None:
        severity = hit.severity or rule.severity
        self.raw.append(_Raw(rule, hit, place, peer, hit.position or position, severity))

    def _intent(self, rule: IntentRule) -> None:
        for view, origin in self.census.wishes:
            for hit in self._call(rule, view):
                position = origin.merged.position(hit.path)
                for network in sorted(origin.networks) or [""]:
                    self._add(rule, hit, Place(network=network), position=position)

    def _nodes(self, rule: NodeRule) -> None:
        cache: dict[int, tuple[Hit, ...]] = {}
        for name, view in self.judged.views.items():
            if id(view) not in cache:
                cache[id(view)] = self._call(rule, view)
            for hit in cache[id(view)]:
                port, _, key = hit.setting.rpartition("|")
                placed = replace(hit, setting=key)
                self._add(rule, placed, Place(name, port), position=self._origin(name, port, key))

    def _ports(self, rule: PortRule) -> None:
        cache: dict[int, tuple[Hit, ...]] = {}
        for name, ports in self.judged.ports.items():
            for port, view in ports.items():
                if id(view) not in cache:
                    cache[id(view)] = self._call(rule, view)
                for hit in cache[id(view)]:
                    peer = self.census.peer_text(End(name, port), hit.setting)
                    self._add(rule, hit, Place(name, port), peer, self._origin(name, port, hit.setting))

    def _links(self, rule: LinkRule) -> None:
        cache: dict[Any, tuple[Hit, ...]] = {}
        for link, a, b, facts in self.census.links:
            key = (id(a), id(b), facts)
            if key not in cache:
                cache[key] = self._call(rule, a, b, facts)
            for hit in cache[key]:
                self._blame(rule, hit, link, a, b)

    def _paths(self, rule: PathRule) -> None:
        cache: dict[Any, tuple[Any, ...]] = {}
        for path in self.census.paths:
            key = tuple(map(id, path.views))
            if key not in cache:
                cache[key] = self._call(rule, path.views)
            for hop, hit in cache[key]:
                end = path.ends[hop]
                self._add(
                    rule,
                    hit,
                    Place(end.node, end.port),
                    f"on the way of {path.ends[0]}",
                    self._origin(end.node, end.port, hit.setting),
                )

    def _networks(self, rule: NetworkRule) -> None:
        for name, members in self.census.networks.items():
            view = NetworkView(name, tuple((port, len(ends)) for port, ends in members.values()))
            for port_view, hit in self._call(rule, view):
                for end in members[id(port_view)][1]:
                    peer = self.census.peer_text(end, hit.setting)
                    self._add(
                        rule,
                        hit,
                        Place(end.node, end.port),
                        peer,
                        self._origin(end.node, end.port, hit.setting),
                    )

    def _fabric(self, rule: FabricRule) -> None:
        for hit in self._call(rule, self.judged):
            for place in hit.places or (Place(),):
                self._add(rule, hit, place)

    # -- blame

    def _blame(self, rule: LinkRule, hit: Hit, link: Link, a: PortView, b: PortView) -> None:
        """The end that differs from its intent, else from its network's majority, else both."""
        ends = {"a": (link.a, a, link.b), "b": (link.b, b, link.a)}
        guilty = [hit.end] if hit.end in ("a", "b") else self._guilty(hit, link, a, b)
        for side in guilty:
            end, _view, other = ends[side]
            told = hit
            if side == "b" and hit.end == "both" and hit.other_found:
                told = replace(hit, found=hit.other_found)
            if not hit.end and side == "b":
                told = replace(hit, found=hit.wanted, wanted=hit.found)
            if len(guilty) == 1 and not hit.end:
                told = self._as_intended(told, end, other)
            peer = f"{other}"
            shown = self.census.shown(other, hit.setting)
            self._add(
                rule,
                told,
                Place(end.node, end.port),
                f"{peer} has {shown}" if shown else peer,
                self._origin(end.node, end.port, hit.setting),
            )

    def _guilty(self, hit: Hit, link: Link, a: PortView, b: PortView) -> list[str]:
        if hit.end == "both":
            return ["a", "b"]
        off = [side for side, view in (("a", a), ("b", b)) if not value_at(view, hit.setting)]
        if len(off) == 1:
            return off
        odd = [
            side
            for side, end, view in (("a", link.a, a), ("b", link.b, b))
            if self.census.odd_one_out(end, view, hit.setting)
        ]
        return odd if len(odd) == 1 else ["a", "b"]

    def _as_intended(self, hit: Hit, end: End, other: End) -> Hit:
        """`wanted` of the one end to blame is its own intent where that is known."""
        wanted = self.census.wanted(end, hit.setting)
        return replace(hit, wanted=wanted) if wanted and wanted != hit.found else hit

    def _origin(self, node: str, port: str, setting: str) -> Position | None:
        plan = self.judged.resolved.plans.get(node)
        if plan is None:
            return None
        if not port:
            return plan.state.system.origins.get(setting.partition(".")[0])
        one = plan.ports.get(port)
        if one is None:
            return None
        try:
            group = group_of(setting)
        except KeyError:
            return None
        return one.origins.get(group.origin) or one.origins.get(setting.partition(".")[0])


def _one_per_cause(raw: Iterable[_Raw]) -> list[_Raw]:
    """Of all hits on one setting of one port, the worst severity and then the highest rank is told."""
    best: dict[Any, _Raw] = {}
    rest: list[_Raw] = []
    for one in raw:
        if not one.place.node:
            rest.append(one)
            continue
        key = (one.place.node, one.place.port, one.hit.setting)
        old = best.get(key)
        if old is None or (one.severity, one.hit.rank) > (old.severity, old.hit.rank):
            best[key] = one
    return [*rest, *best.values()]


def _rejected(findings: Iterable[Finding], judged: Judged) -> tuple[str, ...]:
    """Nodes with an unwaived error; an error in the intent rejects every node that its wishes reach."""
    names: set[str] = set()
    for one in findings:
        if one.severity is not Severity.ERROR or one.waived:
            continue
        for place in one.places:
            if place.node:
                names.add(place.node)
            elif place.network:
                names.update(
                    name
                    for name, ports in judged.ports.items()
                    if any(view.network == place.network for view in ports.values())
                )
            elif one.name != "waiver-expired":
                names.update(judged.views)
    return tuple(name for name in judged.views if name in names)


def _affected(rejected: tuple[str, ...], judged: Judged) -> dict[str, tuple[str, ...]]:
    """Hosts and switches cabled to a rejected switch."""
    bad = {name for name in rejected if not judged.views[name].is_host}
    found: dict[str, set[str]] = {}
    for link in judged.links():
        for one, other in ((link.a.node, link.b.node), (link.b.node, link.a.node)):
            if one in bad and other not in rejected:
                found.setdefault(other, set()).add(one)
    return {name: tuple(sorted(found[name])) for name in judged.views if name in found}


__all__ = ["IntentView", "LinkFacts", "Report", "check", "places_text"]
