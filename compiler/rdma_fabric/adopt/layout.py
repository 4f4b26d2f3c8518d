"""Surveyed nodes as inventory files: groups of equal nodes, roles by distance to hosts, networks."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rdma_fabric import platforms
from rdma_fabric.adopt.survey import Cabling, Surveyed
from rdma_fabric.findings import natural
from rdma_fabric.inventory.ranges import collapse, expand

TIERS: Final = ("leaf", "spine", "superspine")
"""Names of switches by their distance to hosts; what is farther away has the last one."""
_PLAIN: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9_./%-]*|[1-9][0-9]*(?:\.[0-9]+)?(?:%|G|us|ms|s|B|[KM]B|[KM]iB)"
)
_WORDS: Final = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])


@dataclass(frozen=True, slots=True)
class PortPlace:
    """What the inventory says of one port."""

    network: str
    nic: str = ""
    rdma: str = ""
    speed_gbps: int = 0
    rail: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that the inventory files say, before they are written."""

    nodes: Mapping[str, Surveyed]
    links: tuple[tuple[str, str, str, str], ...]
    roles: Mapping[str, str]
    ports: Mapping[str, Mapping[str, PortPlace]]
    data: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Node -> further facts of its entry (stack ...)."""

    def files(self) -> dict[str, str]:
        """hosts.yaml, groups.yaml and cables.csv."""
        groups, members = self._groups()
        hosts = "".join(
            f"{name}: {flow(self._host(group, name))}\n" for group, names in members.items() for name in names
        )
        rows = sorted(self.links, key=lambda row: [natural(cell) for cell in row])
        cables = "a_node,a_port,b_node,b_port,length_m\n"
        cables += "".join(",".join(map(_cell, row)) + ",\n" for row in rows)
        return {
            "groups.yaml": "".join(f"{name}:\n{text}" for name, text in groups.items()),
            "hosts.yaml": _HEAD + hosts,
            "cables.csv": cables,
        }

    def _host(self, group: str, name: str) -> dict[str, Any]:
        one = self.nodes[name].candidate
        found: dict[str, Any] = {"groups": [group], "hostname": one.address}
        found |= {"port": one.port} if one.port != 22 else {}
        found |= {"username": one.username} if one.username else {}
        if one.key_file:
            found["connection_options"] = {"netmiko": {"extras": {"key_file": one.key_file}}}
        return found

    def _groups(self) -> tuple[dict[str, str], dict[str, list[str]]]:
        """Group -> its text below the name, and its nodes; nodes of one group are equal."""
        texts: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self.nodes, key=natural):
            texts[self._entry(name)].append(name)
        groups: dict[str, str] = {}
        members: dict[str, list[str]] = {}
        for text, names in texts.items():
            first = self.nodes[names[0]]
            stem = f"{self.roles[names[0]]}_{first.platform}"
            label = (
                stem
                if stem not in groups
                else f"{stem}_{sum(1 for one in groups if one.startswith(stem)) + 1}"
            )
            groups[label], members[label] = text, names
        return groups, members

    def _entry(self, name: str) -> str:
        node = self.nodes[name]
        data: dict[str, Any] = {"role": self.roles[name]}
        if node.model:
            data["model"] = node.model
        if node.version:
            data["version"] = node.version
        data |= self.data.get(name, {})
        lines = [f"  platform: {node.platform}", "  data:"]
        lines += [f"    {key}: {flow(value)}" for key, value in data.items()]
        if self.ports[name]:
            lines.append("    ports:")
            lines += [f"      {_text(key)}: {flow(value)}" for key, value in _port_rows(self.ports[name])]
        return "\n".join(lines) + "\n"


_HEAD: Final = "# Written by `fabric adopt`: every node as it introduced itself.\n"


def layout(nodes: Mapping[str, Surveyed], cables: Cabling) -> Layout:
    """Roles, networks and rails of surveyed nodes; switches without a cable are left with no port."""
    hosts = {name for name, one in nodes.items() if _is_host(one)}
    roles = _roles(nodes, cables.links, hosts)
    networks = _networks(cables.links, hosts)
    nics = {
        driver: key for key in platforms.nics() for driver in platforms.platform(f"nic_{key}").traits.drivers
    }
    ports: dict[str, dict[str, PortPlace]] = {name: {} for name in nodes}
    for a, a_port, b, b_port in cables.links:
        for name, port in ((a, a_port), (b, b_port)):
            found = next((one for one in nodes[name].ports if one.name == port), None)
            nic = nics.get(found.driver, "generic") if found and name in hosts else ""
            speed = found.speed_gbps if found else 0
            ports[name][port] = PortPlace(networks[name, port], nic, found.rdma if found else "", speed)
    ordered = {
        name: dict(sorted(found.items(), key=lambda item: natural(item[0]))) for name, found in ports.items()
    }
    return Layout(nodes, cables.links, roles, ordered)


def _is_host(node: Surveyed) -> bool:
    """Nodes that list ports of their own are machines with NICs; switches are known by their neighbours."""
    introduced = platforms.platform(node.platform).traits.introduction
    return bool(introduced and introduced.ports)


def _roles(
    nodes: Iterable[str], links: Sequence[tuple[str, str, str, str]], hosts: set[str]
) -> dict[str, str]:
    """Hosts, and switches by their distance to the nearest host."""
    beside: dict[str, set[str]] = defaultdict(set)
    for a, _, b, _ in links:
        beside[a].add(b)
        beside[b].add(a)
    roles = dict.fromkeys(hosts, "host")
    front = set(hosts)
    for depth in range(len(list(nodes))):
        front = {other for name in front for other in beside[name]} - roles.keys()
        roles |= dict.fromkeys(front, TIERS[min(depth, len(TIERS) - 1)])
    return {name: roles.get(name, "switch") for name in nodes}


def _networks(links: Sequence[tuple[str, str, str, str]], hosts: set[str]) -> dict[tuple[str, str], str]:
    """Switches that reach each other without passing a host are one network; the largest is `compute`."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    def island(end: tuple[str, str]) -> str:
        """Switch ports belong to their switch; a host port is an island until it meets a switch."""
        name, port = end
        return f"{name}\0{port}" if name in hosts else name

    for a, a_port, b, b_port in links:
        parent[root(island((a, a_port)))] = root(island((b, b_port)))
    sizes: dict[str, int] = defaultdict(int)
    ends = [(row[at], row[at + 1]) for row in links for at in (0, 2)]
    for end in ends:
        sizes[root(island(end))] += 1
    order = sorted(sizes, key=lambda name: (-sizes[name], natural(name)))
    names = {one: "compute" if index == 0 else f"network{index + 1}" for index, one in enumerate(order)}
    return {end: names[root(island(end))] for end in ends}


# -- text


def _port_rows(ports: Mapping[str, PortPlace]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Ports that differ in nothing but numbers share a row, where the ranges say the same as single rows."""
    groups: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for name, one in ports.items():
        groups[one.network, one.nic, one.speed_gbps, bool(one.rdma), bool(one.rail)].append(name)
    for (network, nic, speed, rdma, rail), names in groups.items():
        key = collapse(names)
        columns = {
            "rdma": collapse(ports[name].rdma for name in names) if rdma else "",
            "rail": collapse(ports[name].rail for name in names) if rail else "",
        }
        whole = all(
            _expands(text, [getattr(ports[name], column) for name in names])
            for column, text in columns.items()
            if text
        )
        if whole and _expands(key, names):
            yield key, _port(network, nic, speed, columns["rdma"], columns["rail"])
            continue
        for name in names:
            yield name, _port(network, nic, speed, ports[name].rdma, ports[name].rail)


def _expands(text: str, names: Sequence[str]) -> bool:
    try:
        return list(expand(text)) == list(names) and "," not in re.sub(r"\[[^\]]*\]", "", text)
    except ValueError:
        return False


def _port(network: str, nic: str, speed: int, rdma: str, rail: str) -> dict[str, Any]:
    found: dict[str, Any] = {"speed": f"{speed}G"} if speed else {}
    found["network"] = network
    return found | {key: text for key, text in (("nic", nic), ("rdma", rdma), ("rail", rail)) if text}


def _cell(text: str) -> str:
    return json.dumps(text) if "," in text or '"' in text else text


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text)


def flow(value: Any) -> str:
    """YAML in one line; every text in quotes that another reader might take for something else."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(str(key))}: {flow(below)}" for key, below in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else str(value)
