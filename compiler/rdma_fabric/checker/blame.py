"""Who has what: distinct ports, cables and paths with all their places, majorities, texts about peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, cached_property
from typing import Any

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import IntentView, LinkFacts, NodeView, Origin, PortView
from rdma_fabric.findings import Position
from rdma_fabric.inventory.types import End, Link
from rdma_fabric.settings import group_of
from rdma_fabric.state import NOT_APPLICABLE, UNMANAGED, differences

MAJORITY_NODES = 3
"""Least number of other nodes that make a majority."""
MAJORITY_SHARE = 0.8
"""Least share of those nodes' ports that have the same value."""

BY_DEFAULT = " by default"
"""Said of a value that nobody wished and nobody read."""

_COMMON = ("qos.trust", "qos.dscp_to_priority", "qos.pfc")
"""Settings that hosts and switches of one network share."""

UNOWNED = UNMANAGED.value
_NOTHING = ("", *(absent.value for absent in (UNMANAGED, NOT_APPLICABLE)))


@cache
def setting_key(setting: str) -> str:
    """The group key of a setting or of a part of one ("...ecn.kmin"); "" for what is no port setting."""
    while "." in setting:
        try:
            return group_of(setting).key
        except (KeyError, IndexError):
            setting = setting.rpartition(".")[0]
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class PortKind:
    """One distinct port and all ends that are such a port."""

    view: PortView
    ends: list[End]


@dataclass(frozen=True, slots=True, eq=False)
class NodeKind:
    """One distinct node and the names of all that are such a node."""

    view: NodeView
    names: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class LinkKind:
    """One distinct pair of ports and all cables between such ports."""

    a: PortView
    b: PortView
    facts: LinkFacts
    links: list[Link]


@dataclass(frozen=True, slots=True, eq=False)
class PathKind:
    """One distinct way: host port, leaf port below, leaf port above, next switch's port (or only two).

    `ends` holds for each hop every end that is passed by such a way, in order of appearance.
    """

    views: tuple[PortView, ...]
    ends: tuple[dict[End, None], ...]


_Ends = dict[End, None]


@dataclass
class _Leaf:
    """The ways through one switch: below it hosts, above it other switches, gathered by distinct ports."""

    below: dict[tuple[int, int], tuple[tuple[PortView, PortView], tuple[_Ends, _Ends]]]
    above: dict[tuple[int, int], tuple[tuple[PortView, PortView], tuple[_Ends, _Ends]]]


@dataclass
class Census:
    """Counts over the judged fabric, computed when first asked for."""

    judged: Judged
    _texts: dict[tuple[int, str], str] = field(default_factory=dict)
    _counts: dict[tuple[str, bool, str], Counter[str]] = field(default_factory=dict)
    _asked: dict[tuple[int, str, str], tuple[str, bool]] = field(default_factory=dict)
    _right: dict[tuple[int, str], bool] = field(default_factory=dict)

    def view(self, end: End) -> PortView | None:
        """The port at an end, or None where it is in no network."""
        return self.judged.ports.get(end.node, {}).get(end.port)

    # -- distinct things

    @cached_property
    def ports(self) -> Mapping[int, PortKind]:
        """Identity of a distinct port -> it and its ends."""
        found: dict[int, PortKind] = {}
        for node, ports in self.judged.ports.items():
            for port, view in ports.items():
                kind = found.get(id(view))
                if kind is None:
                    kind = found[id(view)] = PortKind(view, [])
                kind.ends.append(End(node, port))
        return found

    @cached_property
    def networks(self) -> Mapping[str, list[PortKind]]:
        """Network -> its distinct ports."""
        found: dict[str, list[PortKind]] = {}
        for kind in self.ports.values():
            found.setdefault(kind.view.network, []).append(kind)
        return found

    def sends(self, network: str) -> int:
        """Largest IP MTU of the network's host ports that their own cables carry; 0 without any."""
        found = 0
        for kind in self.links:
            host, switch = (kind.a, kind.b) if kind.a.is_host else (kind.b, kind.a)
            if host.is_host and not switch.is_host and host.network == switch.network == network:
                sent, wanted, carried = host.assumed.mtu.ip, host.wanted.mtu.ip, switch.assumed.mtu.ip
                if isinstance(sent, int) and isinstance(carried, int) and sent <= carried:
                    found = max(found, min(sent, wanted) if isinstance(wanted, int) else sent)
        return found

    @cached_property
    def nodes(self) -> tuple[NodeKind, ...]:
        """Distinct nodes with their names."""
        found: dict[int, NodeKind] = {}
        for name, view in self.judged.views.items():
            found.setdefault(id(view), NodeKind(view, [])).names.append(name)
        return tuple(found.values())

    @cached_property
    def links(self) -> tuple[LinkKind, ...]:
        """Distinct cables whose two ends are in networks."""
        found: dict[Any, LinkKind] = {}
        for link in self.judged.links():
            a, b = self.view(link.a), self.view(link.b)
            if a is not None and b is not None:
                key = (id(a), id(b), link.length_m)
                kind = found.get(key)
                if kind is None:
                    facts = LinkFacts(link.length_m, a.hw.speed_gbps, b.hw.speed_gbps)
                    kind = found[key] = LinkKind(a, b, facts, [])
                kind.links.append(link)
        return tuple(found.values())

    @cached_property
    def paths(self) -> tuple[PathKind, ...]:
        """From every host port over its leaf to the next switches of the same network."""
        leaves: dict[str, _Leaf] = {}
        for kind in self.links:
            for link in kind.links:
                _note_way(leaves, link.a, kind.a, link.b, kind.b)
                _note_way(leaves, link.b, kind.b, link.a, kind.a)
        found: dict[tuple[int, ...], PathKind] = {}
        for leaf in leaves.values():
            for views, ends in _ways(leaf):
                kind_ = found.setdefault(tuple(map(id, views)), PathKind(views, tuple({} for _ in views)))
                for all_, own in zip(kind_.ends, ends, strict=True):
                    all_.update(own)
        return tuple(found.values())

    @cached_property
    def wishes(self) -> tuple[tuple[IntentView, Origin], ...]:
        """Every distinct set of merged wishes with the networks and nodes that it reaches."""
        names: dict[int, list[str]] = {}
        for name, plan in self.judged.resolved.plans.items():
            names.setdefault(id(plan), []).append(name)
        found: dict[int, tuple[Any, Origin, set[int]]] = {}
        for group in names.values():
            plan = self.judged.resolved.plans[group[0]]
            for port, one in plan.ports.items():
                view = self.judged.ports[group[0]][port]
                entry = found.setdefault(id(one.wishes), (one.wishes, Origin(one.merged), set()))
                entry[1].networks.add(view.network)
                entry[1].nodes.update(group)
                if not view.is_host and view.hw.speed_gbps:
                    entry[2].add(view.hw.speed_gbps)
        return tuple((IntentView(w, tuple(sorted(speeds))), origin) for w, origin, speeds in found.values())

    # -- texts

    def shown(self, end: End, setting: str) -> str:
        """What the port at `end` has, as text; "" when that is no port setting."""
        view = self.view(end)
        key = setting_key(setting)
        return self._shown(view, key) if view is not None and key else ""

    def _shown(self, view: PortView, key: str) -> str:
        found = self._texts.get((id(view), key))
        if found is None:
            found = group_of(key).show(view.assumed) + (BY_DEFAULT if key in view.by_default else "")
            self._texts[id(view), key] = found
        return found

    def wanted(self, end: End, setting: str) -> str:
        """What the intent wants of the port at `end`, as text; "" when that is no port setting."""
        view = self.view(end)
        key = setting_key(setting)
        return group_of(key).show(view.wanted) if view is not None and key else ""

    def as_wished(self, view: PortView, setting: str) -> bool:
        """True when this setting of the port is as its intent wants it (or is not owned)."""
        key = setting_key(setting)
        asked = (id(view), key)
        if asked not in self._right:
            self._right[asked] = not any(
                setting_key(one.path.removeprefix("s.")) == key
                for one in differences(view.wanted, view.state, "s")
                if not one.unknown
            )
        return self._right[asked]

    # -- majorities

    def _counter(self, network: str, is_host: bool, key: str) -> Counter[str]:
        """Text of the setting -> number of ports of that kind in the network."""
        at = (network, is_host, key)
        if at not in self._counts:
            counter: Counter[str] = Counter()
            for kind in self.networks.get(network, ()):
                if kind.view.is_host == is_host:
                    counter[self._shown(kind.view, key)] += len(kind.ends)
            self._counts[at] = counter
        return self._counts[at]

    def odd_one_out(self, end: End, view: PortView, setting: str) -> bool:
        """True when at least 3 other nodes exist and 80% of their ports share another value."""
        key = setting_key(setting)
        return bool(key) and self._majority(end.node, view, key)[1]

    def against_all(self, end: End, view: PortView, setting: str) -> bool:
        """True for a port whose value differs from 80% of its network's, hosts and switches together.

        Only for what means the same on both: where a network has two switches, its hosts decide.
        """
        key = setting_key(setting)
        if key not in _COMMON:
            return False
        counter = self._counter(view.network, True, key) + self._counter(view.network, False, key)
        for other in self.judged.ports.get(end.node, {}).values():
            if other.network == view.network:
                counter[self._shown(other, key)] -= 1
        members = set().union(*(self.members.get((view.network, kind), ()) for kind in (True, False)))
        value, count = counter.most_common(1)[0]
        return (
            len(members - {end.node}) >= MAJORITY_NODES
            and count >= MAJORITY_SHARE * counter.total()
            and value != self._shown(view, key)
        )

    def _majority(self, node: str, view: PortView, key: str) -> tuple[str, bool]:
        """(text about the other nodes' ports, whether this port is the odd one)."""
        asked = (id(view), node, key)
        if asked in self._asked:
            return self._asked[asked]
        counter = Counter(self._counter(view.network, view.is_host, key))
        own = self.judged.ports.get(node, {})
        for other in own.values():
            if other.network == view.network and other.is_host == view.is_host:
                counter[self._shown(other, key)] -= 1
        total = sum(counter.values())
        answer = ("", False)
        if total > 0:
            value, count = counter.most_common(1)[0]
            kind = "host" if view.is_host else "switch"
            told = f"{count} of {total} other {kind} ports in network {view.network} have {value}"
            members = self.members.get((view.network, view.is_host), frozenset())
            odd = (
                len(members) - (node in members) >= MAJORITY_NODES
                and count >= MAJORITY_SHARE * total
                and value != self._shown(view, key)
            )
            answer = (told, odd)
        self._asked[asked] = answer
        return answer

    @cached_property
    def members(self) -> Mapping[tuple[str, bool], frozenset[str]]:
        """(network, is a host port) -> the nodes that have such a port."""
        found: dict[tuple[str, bool], set[str]] = {}
        for network, kinds in self.networks.items():
            for kind in kinds:
                nodes = found.setdefault((network, kind.view.is_host), set())
                nodes.update(end.node for end in kind.ends)
        return {key: frozenset(names) for key, names in found.items()}

    def peer_text(self, end: End, setting: str) -> str:
        """ "leaf03 Ethernet7/1 has 9214; 61 of 62 host ports in network compute have 9000"."""
        view = self.view(end)
        key = setting_key(setting)
        if view is None or not key:
            return ""
        parts = []
        other = self.peer(end)
        if other is not None and (shown := self.shown(other, setting)) not in _NOTHING:
            parts.append(f"{other} has {shown}")
        majority = self._majority(end.node, view, key)[0]
        return "; ".join([*parts, majority] if majority else parts)

    def peer(self, end: End) -> End | None:
        """The other end of the cable in a port."""
        found = self._cabled.get(end)
        return found[0] if found else None

    def cable_position(self, end: End) -> Position | None:
        """Where the cable in a port was written."""
        found = self._cabled.get(end)
        return found[1].position if found else None

    @cached_property
    def _cabled(self) -> Mapping[End, tuple[End, Link]]:
        return self.judged.inventory.peers()


def _note_way(leaves: dict[str, _Leaf], at: End, view: PortView, to: End, other: PortView) -> None:
    """Enters a cable as seen from switch port `at`: hosts below, switches above."""
    if view.is_host:
        return
    leaf = leaves.setdefault(at.node, _Leaf({}, {}))
    if other.is_host:
        _, (hosts, ports) = leaf.below.setdefault((id(other), id(view)), ((other, view), ({}, {})))
        hosts[to] = ports[at] = None
    else:
        _, (ports, nexts) = leaf.above.setdefault((id(view), id(other)), ((view, other), ({}, {})))
        ports[at] = nexts[to] = None


def _ways(leaf: _Leaf) -> Iterator[tuple[tuple[PortView, ...], tuple[_Ends, ...]]]:
    for views, ends in leaf.below.values():
        if views[0].network != views[1].network:
            continue
        onward = [
            (above, further)
            for above, further in leaf.above.values()
            if {view.network for view in above} == {views[0].network}
        ]
        if not onward:
            yield views, ends
        for above, further in onward:
            yield (*views, *above), (*ends, *further)


def matches(key: str, patterns: Iterable[str]) -> bool:
    """True when a setting key is one of these or fits one with stars."""
    return any(fnmatchcase(key, one) for one in patterns)


__all__ = ["Census", "LinkKind", "NodeKind", "PathKind", "PortKind", "matches", "setting_key"]
