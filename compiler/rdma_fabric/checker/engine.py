"""Calls every rule once per distinct input, then places, blames, merges, groups and waives what it says."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rdma_fabric.checker import causes, registry
from rdma_fabric.checker.blame import BY_DEFAULT, UNOWNED, Census, LinkKind, PathKind, setting_key
from rdma_fabric.checker.causes import Raw
from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import (
    AnyRule,
    FabricRule,
    Hit,
    IntentRule,
    LinkRule,
    NetworkRule,
    NetworkView,
    NodeRule,
    PathRule,
    PortRule,
    PortView,
)
from rdma_fabric.checker.waivers import apply_waivers
from rdma_fabric.checker.words import grouped
from rdma_fabric.findings import Finding, Place, Position, Severity
from rdma_fabric.inventory.types import End, Link
from rdma_fabric.settings import group_of
from rdma_fabric.state import UNKNOWN, NotJudged


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


def check(judged: Judged, today: datetime.date | None = None) -> Report:
    """Every rule on the whole fabric; `today` decides which waivers have expired."""
    return _Engine(judged, today or datetime.datetime.now(datetime.UTC).date()).run()


@dataclass
class _Engine:
    judged: Judged
    today: datetime.date
    raw: list[Raw] = field(default_factory=list)
    skipped: dict[tuple[str, str], int] = field(default_factory=dict)
    reach: dict[tuple[str, str, Position | None], set[str]] = field(default_factory=dict)
    spots: dict[tuple[str, str], tuple[Place, str]] = field(default_factory=dict)
    census: Census = field(init=False)

    def run(self) -> Report:
        self.census = Census(self.judged)
        for rule in registry.rules():
            self._one(rule)
        findings = grouped(self._narrowed(causes.reduce(self.raw, self.judged)), self.judged)
        findings = apply_waivers(findings, self.judged.resolved, self.today)
        rejected = self._rejected(findings)
        skipped = tuple((code, why, count) for (code, why), count in sorted(self.skipped.items()))
        return Report(
            tuple(sorted(findings, key=_order)),
            rejected,
            _affected(rejected, self.judged),
            skipped,
            len(registry.rules()),
        )

    def _one(self, rule: AnyRule) -> None:
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

    # -- calls

    def _call(self, rule: Any, *arguments: Any) -> list[Any]:
        """The rule's hits; those before a value that could not be read count."""
        found: list[Any] = []
        try:
            found.extend(rule.check(*arguments))
        except NotJudged as reason:
            # What nobody asked for, or what the platform does not have, is not a gap in the judgement.
            if reason.absent is UNKNOWN:
                key = (rule.code, str(reason))
                self.skipped[key] = self.skipped.get(key, 0) + 1
        return found

    def _add(self, rule: AnyRule, hit: Hit, place: Place, **more: Any) -> None:
        key = setting_key(hit.setting)
        hit = replace(hit, setting=key) if key and key != hit.setting else hit
        severity = hit.severity or rule.severity
        if key and severity > Severity.WARNING:
            severity = self._certain(rule, place, key, severity)
        if severity > Severity.NOTE and not rule.plan and self._is_drift(place, hit.setting):
            severity = Severity.NOTE
        more["position"] = hit.position or more.get("position")
        self.raw.append(Raw(rule, hit, place, severity, **more))

    def _certain(self, rule: AnyRule, place: Place, key: str, severity: Severity) -> Severity:
        """At most a warning for what rests on a platform's default: others may have set the device."""
        ends = [End(place.node, place.port)]
        if isinstance(rule, LinkRule) and (other := self.census.peer(ends[0])):
            ends.append(other)
        views = [view for end in ends if (view := self.census.view(end))]
        return min(severity, Severity.WARNING) if any(key in view.by_default for view in views) else severity

    def _is_drift(self, place: Place, setting: str) -> bool:
        """True for what a device has, against its wish, while its node carries no workload."""
        view = self.judged.views.get(place.node)
        if view is None or not view.observed or view.node_state == "active":
            return False
        port = self.judged.ports[place.node].get(place.port)
        return port is None or not setting_key(setting) or not self.census.as_wished(port, setting)

    def _intent(self, rule: IntentRule) -> None:
        for view, origin in self.census.wishes:
            if view.wishes.rdma.transport not in rule.transports:
                continue
            for hit in self._call(rule, view):
                position = origin.merged.position(hit.path)
                self.reach.setdefault((rule.code, hit.setting, position), set()).update(origin.nodes)
                for network in sorted(origin.networks):
                    self._add(rule, hit, Place(network=network), position=position, wishes=id(view.wishes))

    def _narrowed(self, raw: Iterable[Raw]) -> Iterator[Raw]:
        """With the nodes instead of their network, where a breach of the intent is in some of them only."""
        for one in raw:
            yield from self._at_nodes(one) if isinstance(one.rule, IntentRule) else (one,)

    def _at_nodes(self, one: Raw) -> Iterable[Raw]:
        network = one.place.network
        breach = self.reach[one.rule.code, one.hit.setting, one.position]
        kinds = [self.census.members.get((network, is_host), frozenset()) for is_host in (True, False)]
        if any(kind and breach >= kind for kind in kinds):
            return (one,)
        names = [name for name in self.judged.views if name in breach & (kinds[0] | kinds[1])]
        return [replace(one, place=Place(name, network=network)) for name in names]

    def _nodes(self, rule: NodeRule) -> None:
        for kind in self.census.nodes:
            for hit in self._call(rule, kind.view):
                port, _, key = hit.setting.rpartition("|")
                placed = replace(hit, setting=key)
                for name in kind.names:
                    self._at(rule, placed, End(name, port))

    def _ports(self, rule: PortRule) -> None:
        for kind in self.census.ports.values():
            for hit in self._call(rule, kind.view):
                for end in kind.ends:
                    self._at(rule, hit, end, self.census.peer_text(end, hit.setting))

    def _links(self, rule: LinkRule) -> None:
        for kind in self.census.links:
            for hit in self._call(rule, kind.a, kind.b, kind.facts):
                key = setting_key(hit.setting)
                if key in kind.a.by_default and key in kind.b.by_default:
                    continue  # nobody wished anything of either end
                for link in kind.links:
                    self._blame(rule, hit, link, kind)

    def _paths(self, rule: PathRule) -> None:
        for kind in self.census.paths:
            for hop, hit in self._call(rule, kind.views):
                if hop and not self._hop_is_wrong(hit, hop, kind):
                    continue
                host = next(iter(kind.ends[0]))
                for end in kind.ends[hop]:
                    told = f"on the way of {host}" if hop else self.census.peer_text(end, hit.setting)
                    self._at(rule, hit, end, told)

    def _hop_is_wrong(self, hit: Hit, hop: int, kind: PathKind) -> bool:
        """False where the hop is as wished and not the odd one of its network.

        Then two wishes disagree, and the rule of the cable between them says whose it is.
        """
        view = kind.views[hop]
        if not self.census.as_wished(view, hit.setting) or setting_key(hit.setting) in view.by_default:
            return True
        return any(self.census.odd_one_out(end, view, hit.setting) for end in kind.ends[hop])

    def _networks(self, rule: NetworkRule) -> None:
        for name, kinds in self.census.networks.items():
            ports = tuple((kind.view, len(kind.ends)) for kind in kinds)
            view = NetworkView(name, ports, self.census.sends(name))
            for port_view, hit in self._call(rule, view):
                for end in self.census.ports[id(port_view)].ends:
                    self._at(rule, hit, end, self.census.peer_text(end, hit.setting))

    def _fabric(self, rule: FabricRule) -> None:
        for hit in self._call(rule, self.judged):
            for place in hit.places or (Place(),):
                self._add(rule, hit, place)

    def _at(self, rule: AnyRule, hit: Hit, end: End, peer: str = "") -> None:
        place, other = self._spot(end)
        view = self.census.view(end)
        if view is not None and setting_key(hit.setting) in view.by_default:
            reason = "the intent leaves it to the device, and nothing was read"
            hit = replace(hit, found=hit.found + BY_DEFAULT, reason=reason)
        self._add(rule, hit, place, peer=peer, other=other, position=self._origin(end, hit.setting))

    def _spot(self, end: End) -> tuple[Place, str]:
        """The end as a place, and the other end's name."""
        found = self.spots.get((end.node, end.port))
        if found is None:
            other = self.census.peer(end)
            found = self.spots[end.node, end.port] = (Place(end.node, end.port), str(other) if other else "")
        return found

    # -- blame

    def _blame(self, rule: LinkRule, hit: Hit, link: Link, kind: LinkKind) -> None:
        """The end that differs from its intent, else from its network's majority, else both."""
        guilty = {"a": ["a"], "b": ["b"], "both": ["a", "b"]}.get(hit.end) or self._guilty(hit, link, kind)
        if len(guilty) == 2:
            self._both(rule, hit, link)
            return
        end, other = (link.a, link.b) if guilty == ["a"] else (link.b, link.a)
        if not hit.end:
            told = hit if guilty == ["a"] else replace(hit, found=hit.wanted, wanted=hit.found)
            wanted = self.census.wanted(end, hit.setting)
            hit = replace(told, wanted=wanted) if wanted not in ("", UNOWNED, told.found) else told
        shown = self.census.shown(other, hit.setting)
        self._at(rule, hit, end, f"{other} has {shown}" if shown else str(other))

    def _both(self, rule: LinkRule, hit: Hit, link: Link) -> None:
        """One finding at both ends of the cable."""
        if not hit.end:
            values = " and ".join(sorted((hit.found, hit.wanted)))
            hit = replace(hit, found=values, wanted="the same at both ends")
        position = self._origin(link.a, hit.setting) or self._origin(link.b, hit.setting)
        for end, other in ((link.a, link.b), (link.b, link.a)):
            self._add(
                rule, hit, Place(end.node, end.port), other=str(other), cable=str(link), position=position
            )

    def _guilty(self, hit: Hit, link: Link, kind: LinkKind) -> list[str]:
        sides: tuple[tuple[str, End, PortView], ...] = (("a", link.a, kind.a), ("b", link.b, kind.b))
        off = [side for side, _, view in sides if not self.census.as_wished(view, hit.setting)]
        if not off:
            off = [side for side, _, view in sides if setting_key(hit.setting) in view.by_default]
        if len(off) == 1:
            return off
        for differs in (self.census.odd_one_out, self.census.against_all):
            odd = [side for side, end, view in sides if differs(end, view, hit.setting)]
            if len(odd) == 1:
                return odd
        return ["a", "b"]

    # -- positions

    def _origin(self, end: End, setting: str) -> Position | None:
        plan = self.judged.resolved.plans.get(end.node)
        if plan is None:
            return None
        if setting == "qos.cable_m":
            return self.census.cable_position(end)
        if not end.port:
            found = plan.state.system.origins.get(setting.partition(".")[0])
            return found or self._first_origin(end.node, setting)
        one = plan.ports.get(end.port)
        if one is None:
            return None
        key = setting_key(setting)
        found = (
            one.origins.get(group_of(key).origin) or one.origins.get(key.partition(".")[0]) if key else None
        )
        return found or self.judged.inventory.nodes[end.node].spec.ports[end.port].position

    def _first_origin(self, node: str, setting: str) -> Position | None:
        """A port setting that exists once per node is written where its first port's was, else the node."""
        if setting_key(setting):
            for port in self.judged.resolved.plans[node].ports:
                return self._origin(End(node, port), setting)
        return self.judged.inventory.nodes[node].position

    # -- verdict

    def _rejected(self, findings: Iterable[Finding]) -> tuple[str, ...]:
        """Nodes with an unwaived error; an error in the intent rejects every node that its wishes reach."""
        names: set[str] = set()
        for one in findings:
            if one.severity is Severity.ERROR and not one.waived:
                names.update(self._reached(one))
        return tuple(name for name in self.judged.views if name in names)

    def _reached(self, one: Finding) -> Iterator[str]:
        named = [place.node for place in one.places if place.node]
        if named:
            yield from named
        elif one.places:
            # A rule that judges a network as a whole names no wishes: everything in that network is meant.
            networks = {place.network for place in one.places}
            for name in self.reach.get((one.code, one.setting, one.position), self.judged.views):
                if not networks.isdisjoint(self.judged.views[name].networks.values()):
                    yield name


def _order(one: Finding) -> tuple[object, ...]:
    """Severity first, then as all reports; of thousands of places only the first decides."""
    return (-one.severity, *replace(one, places=one.places[:1]).sort_key(), one.found)


def _affected(rejected: tuple[str, ...], judged: Judged) -> dict[str, tuple[str, ...]]:
    """Hosts and switches cabled to a rejected switch."""
    bad = {name for name in rejected if not judged.views[name].is_host}
    out = set(rejected)
    found: dict[str, set[str]] = {}
    if bad:
        for link in judged.links():
            for one, other in ((link.a.node, link.b.node), (link.b.node, link.a.node)):
                if one in bad and other not in out:
                    found.setdefault(other, set()).add(one)
    return {name: tuple(sorted(found[name])) for name in judged.views if name in found}


__all__ = ["Report", "check"]
