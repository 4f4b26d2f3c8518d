"""The rails of a host are not alike.

What it checks
    The physical ports that a host has in one network: when one is cabled, all are; and those with a rail have
    one speed.

Why it breaks RDMA
    A collective spreads its data evenly over all rails and ends when the slowest is done: one rail without
    a cable, or with half the speed, halves the bandwidth of the whole host.
    Source: NVIDIA NCCL documentation, NCCL_CROSS_NIC and topology search (rings use all NICs).

Wrong
    "eth[0-6]": {speed: 400G, network: compute}      # and "eth7": {speed: 200G, network: compute}

Right
    "eth[0-7]": {speed: 400G, network: compute}

When to waive it
    For a host that runs with a broken rail until it is repaired.
"""

from collections import Counter
from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.types import Node, Port


def _check(judged: Judged) -> Iterator[Hit]:
    cabled: dict[str, set[str]] = {}
    for link in judged.links():
        for end in (link.a, link.b):
            cabled.setdefault(end.node, set()).add(end.port)
    for name in judged.views:
        node = judged.inventory.nodes[name]
        if node.is_host and node.spec.state != "retired":
            yield from _host(node, cabled.get(name, set()))


def _host(node: Node, cabled: set[str]) -> Iterator[Hit]:
    networks: dict[str, list[Port]] = {}
    for port in node.spec.ports.values():
        if port.network and port.kind == "physical":
            networks.setdefault(port.network, []).append(port)
    for network, ports in networks.items():
        have = [port for port in ports if port.name in cabled]
        for port in ports if have else ():
            if port not in have:
                yield _hit(
                    node, port, "cables", "no cable", f"a cable, as {have[0].name} of network {network}"
                )
        yield from _speeds(node, [port for port in ports if port.rail and port.speed_gbps])


def _speeds(node: Node, ports: list[Port]) -> Iterator[Hit]:
    counts = Counter(port.speed_gbps for port in ports)
    if len(counts) < 2:
        return
    usual = max(counts, key=lambda speed: (counts[speed], speed))
    for port in ports:
        if port.speed_gbps != usual:
            yield _hit(
                node, port, "speed", f"{port.speed_gbps}G", f"{usual}G, as {counts[usual]} other rail(s)"
            )


def _hit(node: Node, port: Port, setting: str, found: str, wanted: str) -> Hit:
    return Hit(
        setting=setting,
        found=found,
        wanted=wanted,
        message="{where}: the rails of the host are not alike",
        help="correct the inventory, or take the port out of the network",
        position=port.position,
        places=(Place(node.name, port.name),),
    )


RULE = FabricRule("FAB055", "rails-uneven", Severity.WARNING, "0.1", "topology", _check, plan=True)
