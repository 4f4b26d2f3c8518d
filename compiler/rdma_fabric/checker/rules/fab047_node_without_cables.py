"""A node has ports in a network, but no cable.

What it checks
    Every node that is not retired and has ports in a network occurs in cables.csv.

Why it breaks RDMA
    Agreement along links cannot be judged without links: the node's neighbours, cable lengths and headroom
    are unknown, and it is missing in the order of a rollout.
    Source: experience.

Wrong
    a new host in hosts.yaml, and no row for it in cables.csv

Right
    gpu09,eth0,leaf01,Ethernet9/1,5

When to waive it
    Until the node's cables are planned.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity


def _check(judged: Judged) -> Iterator[Hit]:
    cabled = {end.node for link in judged.links() for end in (link.a, link.b)}
    for name, ports in judged.ports.items():
        node = judged.inventory.nodes[name]
        if ports and name not in cabled and node.spec.state != "retired":
            yield Hit(
                setting="cables",
                found="none",
                wanted="at least one row in cables.csv",
                message="{where}: no cable is planned",
                help="add the node's cables to cables.csv, or remove the node",
                position=node.position,
                places=(Place(name),),
            )


RULE = FabricRule("FAB047", "node-without-cables", Severity.WARNING, "0.1", "inventory", _check, plan=True)
