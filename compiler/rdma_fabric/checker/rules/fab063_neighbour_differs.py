"""LLDP shows another neighbour than the cable plan.

What it checks
    What observed nodes learned by LLDP about the far end of their planned cables: another node of the
    inventory, or another port of the right one. A name that no node has is a note, since a device may call
    itself otherwise; no neighbour at all says nothing.

Why it breaks RDMA
    Everything that is computed from the plan is then wrong for this cable: headroom, rails, the order and
    the drained hosts of a rollout. A swapped pair of cables also crosses rails.
    Source: IEEE 802.1AB (what LLDP tells of the far end); experience (two swapped cables look sound apart).

Wrong
    leaf01# show lldp neighbors: Ethernet1/1 gpu02 eth0      # planned: gpu01 eth0

Right
    leaf01# show lldp neighbors: Ethernet1/1 gpu01 eth0

When to waive it
    While cables are moved and the plan is corrected afterwards.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.types import End, Link


def _check(judged: Judged) -> Iterator[Hit]:
    if not any(seen.neighbours for seen in judged.observations.values()):
        return
    nodes = {_plain(name): name for name in judged.inventory.nodes}
    cables = judged.inventory.peers()
    for name, seen in judged.observations.items():
        for port, system, far in seen.neighbours if name in judged.ports else ():
            planned = cables.get(End(name, port))
            if planned is not None and port in judged.ports[name]:
                yield from _judge(
                    judged, End(name, port), planned, nodes.get(_plain(system), ""), system, far
                )


def _plain(name: str) -> str:
    """Devices add their domain, and some change the case."""
    return name.partition(".")[0].lower()


def _judge(
    judged: Judged, at: End, planned: tuple[End, Link], node: str, system: str, far: str
) -> Iterator[Hit]:
    peer, link = planned
    if node == peer.node:
        ports = judged.inventory.nodes[node].spec.ports
        names = {alias: one.name for one in ports.values() for alias in (one.name, one.alias) if alias}
        if names.get(far, peer.port) == peer.port:
            return
    yield Hit(
        setting="LLDP neighbour",
        found=f"{node or system} {far}".strip(),
        wanted=str(peer),
        message="{where}: LLDP shows another neighbour than the cable plan",
        help="correct the cable, or the cable plan",
        severity=None if node else Severity.NOTE,
        position=link.position,
        places=(Place(at.node, at.port),),
    )


RULE = FabricRule("FAB063", "neighbour-differs", Severity.ERROR, "0.1", "observed", _check)
