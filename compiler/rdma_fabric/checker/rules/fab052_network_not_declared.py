"""A port is in a network that the intent does not name.

What it checks
    When the intent lists networks: every port's `network` is one of them, and every network has a port.

Why it breaks RDMA
    A misspelt network gets the fabric's defaults instead of the network's own values, and its ports are
    compared with nobody.
    Source: experience.

Wrong
    networks: {compute: {}}                       # and a port with network: comptue

Right
    networks: {compute: {}}                       # and every port with network: compute

When to waive it
    Never: add the network to the intent, also with no values of its own.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity, did_you_mean


def _check(judged: Judged) -> Iterator[Hit]:
    declared = judged.resolved.intent.networks
    used: dict[str, list[Place]] = {}
    for name, ports in judged.ports.items():
        for port, view in ports.items():
            used.setdefault(view.network, []).append(Place(name, port))
    for network, places in used.items():
        if declared and network not in declared:
            yield _unknown(judged, network, tuple(declared), tuple(places))
    for network in declared:
        if network not in used:
            yield _empty(judged, network)


def _unknown(judged: Judged, network: str, declared: tuple[str, ...], places: tuple[Place, ...]) -> Hit:
    near = did_you_mean(network, declared)
    first = places[0]
    return Hit(
        setting="network",
        found=network,
        wanted=f"one of {', '.join(declared)}",
        message=f"{{where}}: the intent names no network {network}",
        help=f"did you mean {near}?" if near else "add it under networks",
        position=judged.inventory.nodes[first.node].spec.ports[first.port].position,
        places=places,
    )


def _empty(judged: Judged, network: str) -> Hit:
    return Hit(
        setting="network",
        found="no port",
        wanted="at least one port",
        message=f"no port is in network {network}",
        help="give ports this network, or remove it from the intent",
        severity=Severity.NOTE,
        position=judged.resolved.where("networks", network),
    )


RULE = FabricRule("FAB052", "network-not-declared", Severity.WARNING, "0.1", "inventory", _check, plan=True)
