"""Two subnet managers have the same priority.

What it checks
    The priorities in `subnet_manager.nodes` of one network.

Why it breaks RDMA
    With equal priorities the lower GUID wins, so that a replaced adapter changes which node is master, and
    every return of a node may hand the subnet over.
    Source: OpenSM manual page (priority, then GUID).

Wrong
    nodes: [{node: sm01, priority: 10}, {node: sm02, priority: 10}]

Right
    nodes: [{node: sm01, priority: 14}, {node: sm02, priority: 13}]

When to waive it
    Where it does not matter which of the two is master.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._infiniband import subnets, where
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity


def _check(judged: Judged) -> Iterator[Hit]:
    for subnet in subnets(judged):
        seen: dict[int, str] = {}
        for index, one in enumerate(subnet.manager.nodes):
            if one.priority in seen:
                yield Hit(
                    setting="subnet manager priority",
                    found=str(one.priority),
                    wanted=f"another than that of {seen[one.priority]}",
                    message=f"subnet managers {seen[one.priority]} and {one.node} have the same priority",
                    help="give every manager its own; the highest becomes master",
                    position=where(judged, subnet, "nodes", index, "priority"),
                    places=(Place(one.node),),
                )
            seen.setdefault(one.priority, one.node)


RULE = FabricRule("FAB071", "managers-equal", Severity.WARNING, "0.1", "infiniband", _check, plan=True)
