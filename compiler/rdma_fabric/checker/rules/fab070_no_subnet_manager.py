"""An InfiniBand network has no subnet manager.

What it checks
    Every network with transport infiniband has at least one node in `subnet_manager.nodes`, and each of
    these nodes exists and has a port in that network. Where the network was read, a port that waits for a
    manager (state INIT) counts as well.

Why it breaks RDMA
    Without a subnet manager no port gets a LID or a route and none becomes active: nothing works at all.
    Source: InfiniBand Architecture Specification, volume 1, 14.4;
    k8snetworkplumbingwg/sriov-network-device-plugin issue 269 (ports stay in INIT with sm_lid 0).

Wrong
    rdma: {transport: infiniband}
    and no subnet_manager

Right
    subnet_manager:
      nodes: [{node: sm01, priority: 14}, {node: sm02, priority: 13}]

When to waive it
    While the subnet manager belongs to somebody whose nodes are not in this inventory.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity, did_you_mean


def _check(judged: Judged) -> Iterator[Hit]:
    for network, subnet in judged.resolved.subnets.items():
        merged = judged.resolved.managed[network]
        nodes = subnet.manager.nodes
        if not nodes:
            yield Hit(
                setting="subnet manager",
                found="0",
                wanted="one master (standby allowed)",
                message=f"network {network} has no subnet manager: no LIDs, ports never become active",
                help="name its nodes in subnet_manager.nodes",
                position=merged.position(("rdma", "transport")),
                places=(Place(network=network),),
            )
        for index, one in enumerate(nodes):
            if one.node in subnet.managers:
                continue
            known = one.node in judged.inventory.nodes
            near = "" if known else did_you_mean(one.node, judged.inventory.nodes)
            yield Hit(
                setting="subnet manager",
                found=one.node,
                wanted=f"a node with a port in network {network}",
                message=f"subnet manager {one.node} "
                + (f"has no port in network {network}" if known else "is not in the inventory"),
                help=f"did you mean {near}?" if near else f"give it a port with network: {network}",
                position=merged.position(("subnet_manager", "nodes", index, "node")),
                places=(Place(one.node) if known else Place(network=network),),
            )


RULE = FabricRule("FAB070", "no-subnet-manager", Severity.ERROR, "0.1", "infiniband", _check, plan=True)
