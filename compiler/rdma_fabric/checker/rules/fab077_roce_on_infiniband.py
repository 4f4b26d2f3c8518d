"""Settings of RoCE are written for an InfiniBand network.

What it checks
    Keys that mean nothing on InfiniBand, where they are written for such a network (in `networks.NAME`, or at
    the top of an intent whose networks are all InfiniBand): pfc, ecn, dcqcn, trust, mtu.

Why it breaks RDMA
    Nothing is done with them, while somebody believes that they protect the traffic. InfiniBand has credits
    per lane instead of PFC, and congestion control of the subnet manager instead of ECN.
    Source: InfiniBand Architecture Specification, volume 1, 7.9 (flow control).

Wrong
    networks: {compute: {rdma: {transport: infiniband}, pfc: {dcbx: none}}}

Right
    networks: {compute: {rdma: {transport: infiniband}}}

When to waive it
    While a network moves from RoCE to InfiniBand.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._infiniband import network, subnets
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Severity

_KEYS = ("pfc", "ecn", "dcqcn", "trust", "mtu")


def _check(judged: Judged) -> Iterator[Hit]:
    document = judged.resolved.document
    used = {name for view in judged.views.values() for name in view.networks.values()}
    alone = used == set(judged.resolved.subnets)
    for subnet in subnets(judged):
        own = document.data.get("networks", {}).get(subnet.network) or {}
        for key in _KEYS:
            path = ("networks", subnet.network, key) if key in own else (key,)
            if key in own or (alone and key in document.data):
                yield Hit(
                    setting=key,
                    found="written",
                    wanted="nothing",
                    message=f"{key} means nothing in InfiniBand network {subnet.network}",
                    help="remove it; lanes come from classes with a service level (sl)",
                    position=document.position(path),
                    places=network(subnet),
                )


RULE = FabricRule("FAB077", "roce-on-infiniband", Severity.WARNING, "0.1", "infiniband", _check, plan=True)
