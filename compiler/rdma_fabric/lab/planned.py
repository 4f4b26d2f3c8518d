"""The inventory as lab nodes: what the plan says of each device, and nothing of what we compile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rdma_fabric.inventory.types import End, Inventory, Node, Port
from rdma_fabric.lab.fabric import LabNode
from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact
from rdma_fabric.lab.site import MANAGERS, site_files

_NETWORK, _NETWORKS = 200, 50
"""Second octet of the first network's addresses, and how many networks have their own."""
_NAMES = {"networkmanager": "NetworkManager", "ifcfg": "NetworkManager"}
"""Value of mtu_manager -> the manager that runs, where they differ."""


def lab_nodes(inventory: Inventory) -> tuple[LabNode, ...]:
    """One blank lab node per node of the inventory; retired ones are left out."""
    peers = {end: other for end, (other, _) in inventory.peers().items()}
    ib = _infiniband(inventory)
    addresses = _addresses(inventory)
    return tuple(
        _lab_node(node, peers, ib.get(node.name, {}), addresses.get(node.name, {}))
        for node in inventory.nodes.values()
        if node.spec.state != "retired"
    )


def _infiniband(inventory: Inventory) -> dict[str, dict[str, Any]]:
    """Node -> its InfiniBand ports. A network is InfiniBand when a port in it has a GUID."""

    def network(end: End) -> str:
        return inventory.nodes[end.node].spec.ports[end.port].network

    networks = {network(end) for end in inventory.guids} - {""}
    found: dict[str, dict[str, Any]] = {}
    for name, node in inventory.nodes.items():
        for port in node.spec.ports.values():
            if port.network not in networks or port.kind != "physical":
                continue
            guid = inventory.guids.get(End(name, port.name), "")
            if not node.is_host:
                found.setdefault(name, {})[port.name] = _number(port)
            elif guid:
                found.setdefault(name, {})[port.name] = {"guid": guid, "ibdev": port.rdma}
    return found


def _addresses(inventory: Inventory) -> dict[str, dict[str, tuple[str, str]]]:
    """Host -> port -> its IPv4 and IPv6 address with prefixes, counted per network in natural order.

    Networks by name: 10.200.0.0/16 and fd00:200::/64, 10.201.0.0/16 and fd00:201::/64, and so on.
    """
    found: dict[str, dict[str, tuple[str, str]]] = {}
    hosts = [node for node in inventory.nodes.values() if node.is_host]
    networks = sorted({port.network for node in hosts for port in node.spec.ports.values()} - {""})
    counted = dict.fromkeys(networks, 0)
    for node in hosts:
        inside = {name for port in node.spec.ports.values() if port.kind == "bond" for name in port.members}
        for port in node.spec.ports.values():
            if port.network and port.kind in ("physical", "vf") and port.name not in inside:
                number, net = counted[port.network], _NETWORK + networks.index(port.network) % _NETWORKS
                counted[port.network] += 1
                high, low = divmod(number, 250)
                own = (f"10.{net}.{high % 250}.{low + 1}/16", f"fd00:{net}::{number + 1:x}/64")
                found.setdefault(node.name, {})[port.name] = own
    return found


def _number(port: Port) -> int:
    """Number of a switch port: its index, else the last number in its name."""
    digits = re.findall(r"\d+", port.name)
    return port.index or int(digits[-1] if digits else 1)


def _lab_node(
    node: Node, peers: dict[End, End], ib: dict[str, Any], addresses: Mapping[str, tuple[str, str]]
) -> LabNode:
    spec = node.spec
    seed = spec.lab_seed if not node.is_host else ()
    facts = DeviceFacts(node.name, spec.platform, spec.model, spec.version, tuple(_ports(node, peers)), seed)
    if not node.is_host:
        return LabNode(facts, "switch", node.hostname, {"ib": ib} if ib else {})
    return LabNode(facts, "host", node.hostname, _host(node, ib, addresses))


def _ports(node: Node, peers: dict[End, End]) -> Iterator[PortFact]:
    for port in node.spec.ports.values():
        if port.kind == "physical":
            peer = peers.get(End(node.name, port.name))
            yield PortFact(
                name=port.name,
                speed_gbps=port.speed_gbps,
                lanes=port.lanes,
                alias=port.alias,
                index=port.index,
                peer_node=peer.node if peer else "",
                peer_port=peer.port if peer else "",
            )


def _host(node: Node, ib: dict[str, Any], addresses: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """What a sandbox needs besides: NICs, the manager of its interfaces, and bonds and VLANs in its files."""
    options = dict(node.spec.options)
    found: dict[str, Any] = {"ports": _nics(node.spec.ports, options, ib, addresses)}
    found |= {key: options[f"lab_{key}"] for key in ("iproute", "niccli", "mft") if f"lab_{key}" in options}
    seed = []
    if ib:
        found["ib"] = ib
        seed.append(_OPENSM)
    stacked = any(port.kind in ("bond", "vlan") for port in node.spec.ports.values())
    manager = options.get("mtu_manager", "")
    if manager in MANAGERS:
        found["manager"] = _NAMES.get(manager, manager)
        seed += site_files(manager, node.spec.ports)
    elif stacked:
        seed += site_files("netplan", node.spec.ports)
    if stacked:
        found["stacked"] = True
    if seed:
        found["seed"] = seed
    return found


def _nics(
    ports: Mapping[str, Port],
    options: Mapping[str, str],
    ib: Mapping[str, Any],
    addresses: Mapping[str, tuple[str, str]],
) -> dict[str, dict[str, Any]]:
    """Netdev -> fields of HostPort, of physical ports and virtual functions."""
    found = {}
    for port in ports.values():
        if port.kind not in ("physical", "vf"):
            continue
        above = ports.get(port.parent) if port.kind == "vf" else None
        nic = port.nic or (above.nic if above else "")
        fields = {
            "nic": "ib" if port.name in ib else nic or "generic",
            "ibdev": port.rdma,
            "bdf": port.bdf,
            "stack": options.get("stack", "inbox"),
            "traits": options.get("lab_traits", "").split(),
            "parent": above.name if above else "",
        }
        if port.name not in ib:
            fields["address"], fields["address6"] = addresses.get(port.name, ("", ""))
        found[port.name] = {key: value for key, value in fields.items() if value}
    return found


_OPENSM = (
    "/etc/opensm/opensm.conf",
    "# The site's own. ibsim drops what answers a trap, and OpenSM waits for it: with max_wire_smps of them\n"
    "# (4 unless it is given) on their way it sends nothing more.\n"
    "sweep_on_trap FALSE\nmax_wire_smps 8\n",
)
