"""Who has what: distinct ports per network, links and paths as views, majorities, and texts about peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import IntentView, LinkFacts, Origin, PortView
from rdma_fabric.inventory.types import End, Link
from rdma_fabric.settings import group_of
from rdma_fabric.state import differences

MAJORITY_NODES = 3
"""Least number of other nodes that make a majority."""
MAJORITY_SHARE = 0.8
"""Least share of those nodes' ports that have the same value."""


def setting_key(setting: str) -> str:
    """The group key of a setting, or "" for things that are no port setting."""
    try:
        return group_of(setting).key
    except (KeyError, IndexError):
        return ""


def value_at(view: PortView, setting: str) -> bool:
    """True when this setting of the port is as its intent wants it (or is not owned)."""
    key = setting_key(setting)
    return not any(
        setting_key(one.path.removeprefix("s.")) == key
        for one in differences(view.wanted, view.state, "s")
        if not one.unknown
    )


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Host port, leaf port below, leaf port above, next switch's port."""

    ends: tuple[End, ...]
    views: tuple[PortView, ...]


@dataclass
class Census:
    """Counts over the judged fabric, computed when first asked for."""

    judged: Judged
    _texts: dict[tuple[int, str], str] = field(default_factory=dict)
    _counts: dict[tuple[str, bool, str], Counter[str]] = field(default_factory=dict)
    _asked: dict[tuple[int, str, str], tuple[str, bool]] = field(default_factory=dict)

    def view(self, end: End) -> PortView | None:
        """The port at an end, or None where it is in no network."""
        return self.judged.ports.get(end.node, {}).get(end.port)

    @cached_property
    def networks(self) -> Mapping[str, dict[int, tuple[PortView, list[End]]]]:
        """Network -> id of a distinct port -> (port, ends that are such a port)."""
        found: dict[str, dict[int, tuple[PortView, list[End]]]] = {}
        for node, ports in self.judged.ports.items():
            for port, view in ports.items():
                members = found.setdefault(view.network, {})
                members.setdefault(id(view), (view, []))[1].append(End(node, port))
        return found

    @cached_property
    def links(self) -> tuple[tuple[Link, PortView, PortView, LinkFacts], ...]:
        """Cables whose two ends are in networks."""
        found = []
        for link in self.judged.links():
            a, b = self.view(link.a), self.view(link.b)
            if a is not None and b is not None:
                found.append((link, a, b, LinkFacts(link.length_m, a.hw.speed_gbps, b.hw.speed_gbps)))
        return tuple(found)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """From every host port over its leaf to the next switches; one per distinct uplink of a leaf."""
        up: dict[str, dict[Any, tuple[Link, bool]]] = {}
        for link, a, b, _ in self.links:
            if not a.is_host and not b.is_host:
                up.setdefault(link.a.node, {}).setdefault((id(a), id(b)), (link, True))
                up.setdefault(link.b.node, {}).setdefault((id(b), id(a)), (link, False))
        found: list[Path] = []
        for link, a, b, _ in self.links:
            if a.is_host == b.is_host:
                continue
            host, leaf = (link.a, link.b) if a.is_host else (link.b, link.a)
            found.extend(self._onward(host, leaf, up.get(leaf.node, {})))
        return tuple(found)

    def _onward(self, host: End, leaf: End, up: Mapping[Any, tuple[Link, bool]]) -> Iterator[Path]:
        for link, forward in up.values():
            out, into = (link.a, link.b) if forward else (link.b, link.a)
            ends = (host, leaf, out, into)
            views = tuple(view for end in ends if (view := self.view(end)) is not None)
            if len(views) == 4 and len({view.network for view in views}) == 1:
                yield Path(ends, views)

    @cached_property
    def wishes(self) -> tuple[tuple[IntentView, Origin], ...]:
        """Every distinct set of merged wishes with the networks that it reaches."""
        found: dict[int, tuple[Any, Origin, set[int]]] = {}
        for name, plan in self.judged.resolved.plans.items():
            for port, one in plan.ports.items():
                view = self.judged.ports[name][port]
                entry = found.setdefault(id(one.wishes), (one.wishes, Origin(one.merged), set()))
                entry[1].networks.add(view.network)
                if not view.is_host and view.hw.speed_gbps:
                    entry[2].add(view.hw.speed_gbps)
        return tuple((IntentView(w, tuple(sorted(speeds))), origin) for w, origin, speeds in found.values())

    # -- texts

    def shown(self, end: End, setting: str) -> str:
        """What the port at `end` has, as text; "" when that is no port setting."""
        view = self.view(end)
        key = setting_key(setting)
        if view is None or not key:
            return ""
        return self._shown(view, key)

    def _shown(self, view: PortView, key: str) -> str:
        found = self._texts.get((id(view), key))
        if found is None:
            found = self._texts[id(view), key] = group_of(key).show(view.state)
        return found

    def wanted(self, end: End, setting: str) -> str:
        """What the intent wants of the port at `end`, as text; "" when that is no port setting."""
        view = self.view(end)
        key = setting_key(setting)
        return group_of(key).show(view.wanted) if view is not None and key else ""

    # -- majorities

    def _counter(self, network: str, is_host: bool, key: str) -> Counter[str]:
        """Text of the setting -> number of ports of that kind in the network."""
        at = (network, is_host, key)
        if at not in self._counts:
            counter: Counter[str] = Counter()
            for view, ends in self.networks.get(network, {}).values():
                if view.is_host == is_host:
                    counter[self._shown(view, key)] += len(ends)
            self._counts[at] = counter
        return self._counts[at]

    def odd_one_out(self, end: End, view: PortView, setting: str) -> bool:
        """True when at least 3 other nodes exist and 80% of their ports share another value."""
        key = setting_key(setting)
        return bool(key) and self._majority(end.node, view, key)[1]

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
        for network, ports in self.networks.items():
            for view, ends in ports.values():
                found.setdefault((network, view.is_host), set()).update(end.node for end in ends)
        return {key: frozenset(names) for key, names in found.items()}

    def peer_text(self, end: End, setting: str) -> str:
        """ "leaf03 Ethernet7/1 has 9214; 61 of 62 host ports in network compute have 9000"."""
        view = self.view(end)
        key = setting_key(setting)
        if view is None or not key:
            return ""
        parts = []
        other = self.peers.get(end)
        if other is not None and self.view(other) is not None:
            parts.append(f"{other} has {self.shown(other, setting)}")
        majority = self._majority(end.node, view, key)[0]
        return "; ".join([*parts, majority] if majority else parts)

    @cached_property
    def peers(self) -> dict[End, End]:
        """Each cabled end -> the other."""
        return {end: other for end, (other, _) in self.judged.inventory.peers().items()}


__all__ = ["Census", "Path", "setting_key", "value_at"]
