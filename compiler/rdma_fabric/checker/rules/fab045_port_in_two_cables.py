"""A port is in two cables.

What it checks
    Every port occurs at most once in cables.csv. A breakout port has a name of its own for each lane.

Why it breaks RDMA
    One of the two rows is wrong, and with it everything that is computed from the cable: neighbour, length,
    headroom, the order of a rollout.
    Source: experience; a port has one socket.

Wrong
    gpu01,eth0,leaf01,Ethernet1/1,5
    gpu02,eth0,leaf01,Ethernet1/1,5

Right
    gpu01,eth0,leaf01,Ethernet1/1,5
    gpu02,eth0,leaf01,Ethernet2/1,5

When to waive it
    Never: correct the plan.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.types import End, Link


def _check(judged: Judged) -> Iterator[Hit]:
    first: dict[End, tuple[End, Link]] = {}
    for link in judged.links():
        for end, other in ((link.a, link.b), (link.b, link.a)):
            if end not in first:
                first[end] = other, link
                continue
            before, row = first[end]
            yield Hit(
                setting="cable",
                found=f"cables to {before} ({row.position}) and to {other}",
                wanted="one cable",
                message="{where} is in two cables",
                help="remove one of the two rows, or correct its port",
                position=link.position,
                places=(Place(end.node, end.port),),
            )


RULE = FabricRule("FAB045", "port-in-two-cables", Severity.ERROR, "0.1", "inventory", _check, plan=True)
