"""The ends of a cable have different speeds.

What it checks
    The planned speeds of both ports of every cable, where both are given.

Why it breaks RDMA
    Without a common speed the link stays down; with auto-negotiation it comes up at the lower one, and
    thresholds, headroom and shares of the faster end are wrong.
    Source: IEEE 802.3 (both ends of a link run at one speed).

Wrong
    leaf01 Ethernet1/1 with speed 400G cabled to gpu01 eth0 with speed 200G

Right
    both ends with speed 200G, or a breakout of the switch port

When to waive it
    Never: correct the plan.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.types import End


def _check(judged: Judged) -> Iterator[Hit]:
    nodes = judged.inventory.nodes

    def speed(end: End) -> int:
        return nodes[end.node].spec.ports[end.port].speed_gbps

    for link in judged.links():
        a, b = speed(link.a), speed(link.b)
        if a and b and a != b:
            yield Hit(
                setting="speed",
                found=f"{a}G and {b}G",
                wanted="the same speed at both ends",
                message="{where}: the ends of the cable have different speeds",
                help="correct the speed of one port, or the cable plan",
                position=link.position,
                places=tuple(Place(end.node, end.port) for end in (link.a, link.b)),
            )


RULE = FabricRule("FAB044", "cable-speeds-differ", Severity.ERROR, "0.1", "inventory", _check, plan=True)
