"""Finds the intent that reproduces what was observed: infer by majority, resolve, realize, compare, mend.

What differs on most nodes of a role or platform becomes an override, or is left to the devices when no
override makes it right. What differs on single nodes stays a difference: those nodes are the deviants.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rdma_fabric import platforms
from rdma_fabric.adopt.infer import Seen, by_flag, leaves, of_hosts, usual, wishes
from rdma_fabric.adopt.layout import Layout, flow
from rdma_fabric.drift import lost
from rdma_fabric.findings import InputError
from rdma_fabric.intent.models import RDMA_MTUS, Intent
from rdma_fabric.inventory.ranges import collapse
from rdma_fabric.inventory.types import Inventory
from rdma_fabric.platforms._contract import OURS
from rdma_fabric.resolve import NodePlan, resolve
from rdma_fabric.settings import Deviation, deviations
from rdma_fabric.source import parse_yaml, validate
from rdma_fabric.state import NOT_READ, Absent, Difference, Observation, PortSettings, differences

ORDER: Final = ("rdma", "mtu", "trust", "classes", "ecn", "pfc", "dcqcn", "hosts", "networks", "overrides")
_MAY_BE_LEFT: Final = {
    "ecn": ".ecn",
    "bandwidth": ".share",
    "scheduler": ".share",
    "cap": ".share",
    "watchdog": "qos.watchdog qos.guarded",
    "dcbx": "qos.dcbx",
    "switch": "mtu.",
    "host": "mtu.",
    "dcqcn": "marking.",
}
"""Last word of a key that the devices may keep for themselves when no value of ours fits -> its settings."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """The result: the intent's text, and which nodes it does not describe."""

    intent: str
    deviants: Mapping[str, tuple[Deviation, ...]]
    left: tuple[str, ...] = ()
    """Keys that no value describes on all nodes: the devices keep them."""
    lost: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Node -> settings that are as described and that a reboot changes."""


def fit(name: str, layout: Layout, inventory: Inventory, seen: Mapping[str, Observation]) -> Adopted:
    """The intent for nodes that were read; the inventory is what the layout's files give."""
    return _Fit(name, layout, inventory, seen).run()


@dataclass(frozen=True, slots=True)
class _Group:
    role: str
    platform: str
    network: str
    """"" for nodes in several."""

    def where(self, others: Collection[_Group]) -> str:
        """The shortest selector of an override that means this group and no other."""
        alike = [one for one in others if one.role == self.role]
        words = [f"role={self.role}"]
        if len({one.platform for one in alike}) > 1:
            words.append(f"platform={self.platform}")
        if self.network and len({one.network for one in alike if one.platform == self.platform}) > 1:
            words.append(f"network={self.network}")
        return ",".join(words)


@dataclass
class _Fit:
    name: str
    layout: Layout
    inventory: Inventory
    seen: Mapping[str, Observation]
    left: list[str] = field(default_factory=list)
    tried: dict[str, dict[str, tuple[Deviation, ...]] | None] = field(default_factory=dict)
    """Text of an intent -> what deviates from it."""
    pairs: dict[tuple[int, int], tuple[PortSettings, PortSettings, tuple[Difference, ...]]] = field(
        default_factory=dict
    )
    ports: list[Seen] = field(init=False)

    def __post_init__(self) -> None:
        self.seen = _shared(self.seen)
        self.ports = [
            Seen(name, port.name, self.layout.roles[name] == "host", speed, port.settings, own)
            for name, one in self.seen.items()
            for own in (dict(one.facts).get(OURS, ""),)
            for port in one.running.ports
            for speed in (_speed(port.speed_gbps),)
        ]

    def run(self) -> Adopted:
        data = self._first()
        for path in (("mtu", "switch"), *(("networks", one, "mtu", "switch") for one in data["networks"])):
            data = self._better(data, _with(data, path, "max"), ties=True)
        for flag in ("nccl", "ucx") if "hosts" in data else ():
            data = self._better(data, data | {"hosts": by_flag(flag, data["hosts"])}, ties=True)
        data = self._overridden(_hoisted(data))
        data = self._dropped(data)
        found = self._deviants(data) or {}
        deviants = {node: rows for node, rows in found.items() if rows}
        return Adopted(text(data), deviants, tuple(self.left), self._lost(text(data), found))

    # -- the first guess

    def _first(self) -> dict[str, Any]:
        """Majority over all; networks that want something else get it as their own."""
        by_network: dict[str, list[Seen]] = defaultdict(list)
        for one in self.ports:
            by_network[self.layout.ports[one.node][one.port].network].append(one)
        data: dict[str, Any] = {"version": 1, "name": self.name, "rdma": self._rdma()}
        found = {network: wishes(ports) for network, ports in by_network.items()}
        keys = dict.fromkeys(key for one in found.values() for key in one)
        networks: dict[str, dict[str, Any]] = {network: {} for network in sorted(found)}
        for key in keys:
            values = [one.get(key) for one in found.values()]
            if all(value == values[0] for value in values):
                data[key] = values[0]
            else:
                for network, own in found.items():
                    networks[network] |= {key: own[key]} if key in own else {}
        data |= {"networks": networks}
        more = data | {"hosts": data.get("hosts", {}) | of_hosts(self.ports)}
        # What a file on a host holds need not be a value of the intent.
        return data if self._score(more) is None else more

    def _rdma(self) -> dict[str, Any]:
        """The largest RDMA MTU that the hosts' usual MTU carries."""
        ip = usual(one.settings.mtu.ip for one in self.ports if one.host)
        found: dict[str, Any] = {"transport": "rocev2"}
        if ip is None:
            return found
        bounds = [platforms.platform(f"nic_{nic}").traits.netdev_bound for nic in platforms.nics()]
        fits = [mtu for mtu in RDMA_MTUS if all(ip >= one[mtu] for one in bounds if mtu in one)]
        return found | {"mtu": max(fits, default=RDMA_MTUS[0])}

    # -- trying

    def _deviants(self, data: Mapping[str, Any]) -> dict[str, tuple[Deviation, ...]] | None:
        """What every node has other than this intent says; None when the intent is not valid."""
        content = text(data)
        if content not in self.tried:
            self.tried[content] = self._compared(content)
            platforms.forget()
        return self.tried[content]

    def _plans(self, content: str) -> Mapping[str, NodePlan]:
        document = parse_yaml(content.encode(), "fabric.yaml")
        return resolve(validate(Intent, document), document, self.inventory).plans

    def _lost(self, content: str, now: Mapping[str, Iterable[Deviation]]) -> dict[str, tuple[str, ...]]:
        """What every node would come back from a reboot without."""
        plans = self._plans(content)
        kept: dict[tuple[int, Observation], tuple[str, ...]] = {}
        found = {}
        for node, seen in self.seen.items():
            key = (id(plans[node]), seen)
            if key not in kept:
                wanted = platforms.realize(plans[node].state, plans[node].hardware).state
                rows = lost(wanted, seen, {(one.port, one.key) for one in now.get(node, ())})
                kept[key] = tuple(dict.fromkeys(f"{one.port} {one.title}".strip() for one in rows))
            found[node] = kept[key]
        return {node: settings for node, settings in found.items() if settings}

    def _compared(self, content: str) -> dict[str, tuple[Deviation, ...]] | None:
        try:
            plans = self._plans(content)
        except InputError:
            return None
        cache: dict[tuple[int, int], tuple[Deviation, ...]] = {}
        found = {}
        for node, seen in self.seen.items():
            key = (id(plans[node]), id(seen.running))
            if key not in cache:
                cache[key] = self._deviating(plans[node], seen)
            found[node] = cache[key]
        return found

    def _deviating(self, plan: NodePlan, seen: Observation) -> tuple[Deviation, ...]:
        """As drift compares; ports with the same two settings are compared once."""
        wanted = platforms.realize(plan.state, plan.hardware).state
        rows = list(differences(wanted.system, seen.running.system, "system"))
        there = {port.name: port.settings for port in seen.running.ports}
        for port in wanted.ports:
            one, other = port.settings, there.get(port.name, NOT_READ)
            key = (id(one), id(other))
            if key not in self.pairs:  # the settings are kept, so that no identity is used again
                self.pairs[key] = (one, other, differences(one, other))
            rows += [replace(row, path=f"ports.{port.name}.{row.path}") for row in self.pairs[key][2]]
        return tuple(one for one in deviations(rows, wanted, seen.running) if not one.unknown)

    def _score(self, data: Mapping[str, Any]) -> int | None:
        found = self._deviants(data)
        return None if found is None else sum(map(len, found.values()))

    def _better(self, now: dict[str, Any], other: dict[str, Any], *, ties: bool = False) -> dict[str, Any]:
        """`other` when it is valid and fewer settings deviate (with `ties`: not more)."""
        old, new = self._score(now), self._score(other)
        if new is None or (old is not None and (new > old or (new == old and not ties))):
            return now
        return other

    # -- overrides

    def _systematic(self, data: Mapping[str, Any]) -> dict[_Group, set[str]]:
        """Settings that deviate alike on more than half of a group's nodes, of two at least."""
        found = self._deviants(data) or {}
        rows: dict[_Group, set[str]] = {}
        for group, nodes in self._groups().items():
            counts: Counter[tuple[str, str]] = Counter()
            for node in nodes:
                counts.update({(one.key, one.found) for one in found.get(node, ())})
            alike = {key for (key, _), number in counts.items() if number * 2 > len(nodes) and len(nodes) > 1}
            if alike:
                rows[group] = alike
        return rows

    def _groups(self) -> dict[_Group, list[str]]:
        """Nodes that one override could be about."""
        groups: dict[_Group, list[str]] = defaultdict(list)
        for node in self.seen:
            networks = {place.network for place in self.layout.ports[node].values()}
            network = next(iter(networks)) if len(networks) == 1 else ""
            groups[_Group(self.layout.roles[node], self.layout.nodes[node].platform, network)].append(node)
        return groups

    def _overridden(self, data: dict[str, Any]) -> dict[str, Any]:
        """Adds what most nodes of a role (or of a platform in it) have, key by key, where that helps."""
        for group in self._systematic(data):
            nodes = set(self._groups()[group])
            ports = [one for one in self.ports if one.node in nodes]
            own = leaves(wishes(ports)) | leaves({"hosts": of_hosts(ports)})
            base = leaves({key: value for key, value in data.items() if key in ORDER[:-2]})
            base |= leaves(data["networks"].get(group.network, {}))
            for path, value in own.items():
                if base.get(path) != value and path[0] != "rdma":
                    # What a host has once no network can set: such an override is for hosts by name.
                    where = collapse(sorted(nodes)) if path[0] == "hosts" else group.where(self._groups())
                    data = self._better(data, _overriding(data, where, ".".join(path), value))
        return data

    def _dropped(self, data: dict[str, Any]) -> dict[str, Any]:
        """Leaves to the devices what most nodes of a group have other than any value of ours."""
        if not self._systematic(data):
            return data
        for path in _droppable(data):
            alike = {key for keys in self._systematic(data).values() for key in keys}
            if not any(word in key for key in alike for word in _MAY_BE_LEFT[path[-1]].split()):
                continue
            without = _without(data, path)
            before, after = (sum(map(len, self._systematic(one).values())) for one in (data, without))
            if self._score(without) is not None and after < before:
                data = without
                self.left.append(".".join(path))
        return data


def _shared(seen: Mapping[str, Observation]) -> dict[str, Observation]:
    """Equal settings of ports as one object."""
    kept: dict[PortSettings, PortSettings] = {}
    found = {}
    for node, one in seen.items():
        ports = tuple(
            replace(port, settings=kept.setdefault(port.settings, port.settings))
            for port in one.running.ports
        )
        found[node] = replace(one, running=replace(one.running, ports=ports))
    return found


def _hoisted(data: dict[str, Any]) -> dict[str, Any]:
    """What all networks have alike stands once, above them."""
    networks = list(data["networks"].values())
    keys = [key for key in networks[0] if all(one.get(key) == networks[0][key] for one in networks)]
    kept = {
        name: {key: value for key, value in one.items() if key not in keys}
        for name, one in data["networks"].items()
    }
    return data | {key: networks[0][key] for key in keys} | {"networks": kept}


def _speed(value: int | Absent) -> int:
    return value if isinstance(value, int) else 0


def _with(data: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy with a value at a path that exists; without the path, as it is."""
    key, *rest = path
    if key not in data:
        return dict(data)
    return dict(data) | {key: _with(data[key], rest, value) if rest else value}


def _without(data: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    key, *rest = path
    if not rest:
        return {name: value for name, value in data.items() if name != key}
    return dict(data) | {key: _without(data[key], rest)}


def _overriding(data: Mapping[str, Any], where: str, key: str, value: Any) -> dict[str, Any]:
    rows = [dict(one) for one in data.get("overrides", ())]
    row = next((one for one in rows if one["where"] == where), None)
    if row is None:
        rows.append({"where": where, "set": {key: value}})
    else:
        row["set"] = row["set"] | {key: value}
    return dict(data) | {"overrides": rows}


def _droppable(data: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in data.items():
        here = (*path, str(key))
        if key in _MAY_BE_LEFT:
            yield here
        elif isinstance(value, Mapping):
            yield from _droppable(value, here)


# -- text


def text(data: Mapping[str, Any]) -> str:
    """The intent as YAML: one line per key, one per class, speed, network and override."""
    lines = ["version: 1", f"name: {flow(data['name'])}"]
    for key in ORDER:
        value = data.get(key)
        if value is None or value == {} or value == []:
            continue
        if key in ("classes", "ecn", "networks") and isinstance(value, Mapping):
            lines += [f"{key}:", *(f"  {flow(str(name))}: {flow(one)}" for name, one in value.items())]
        elif key == "overrides":
            lines += [f"{key}:", *(f"  - {flow(one)}" for one in value)]
        else:
            lines.append(f"{key}: {flow(value)}")
    return "\n".join(lines) + "\n"


def with_facts(layout: Layout, seen: Mapping[str, Observation]) -> Layout:
    """Speeds and driver stacks as they were observed."""
    ports = {
        node: {
            port: replace(place, speed_gbps=place.speed_gbps or _observed(seen.get(node), port))
            for port, place in found.items()
        }
        for node, found in layout.ports.items()
    }
    data = {}
    for node, one in seen.items():
        stacks = {value for key, value in one.facts if key.startswith("stack ")}
        data[node] = {"stack": next(iter(stacks))} if len(stacks) == 1 else {}
    return replace(layout, ports=ports, data=data)


def _observed(one: Observation | None, port: str) -> int:
    state = one.running.port(port) if one else None
    return _speed(state.speed_gbps) if state else 0


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Writes files that must not be there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
