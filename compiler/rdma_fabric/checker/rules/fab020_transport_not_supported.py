"""A node is in a network whose transport its platform cannot do.

What it checks
    `rdma.transport` of every network against what the platforms of its nodes can do: an Ethernet switch in
    an InfiniBand network, or an InfiniBand switch in a RoCE network.

Why it breaks RDMA
    InfiniBand has a subnet manager, partitions and lanes instead of DSCP, PFC and ECN. Settings of the one
    for the other would give a fabric that looks configured and never comes up.
    Source: InfiniBand Architecture Specification, volume 1, chapter 14 (subnet management).

Wrong
    rdma: {transport: infiniband, mtu: 4096} for a network whose leaf is an Ethernet switch

Right
    networks: {compute: {rdma: {transport: infiniband}}, storage: {}} with the leaf's ports in storage

When to waive it
    Never: the node cannot do what the network is.
"""

from collections.abc import Iterator

from rdma_fabric import platforms
from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity


def _check(node: NodeView) -> Iterator[Hit]:
    able = platforms.platform(node.hw.base).traits.transports
    for transport in sorted({wishes.rdma.transport for wishes in node.port_wishes.values()} - {*able}):
        networks = sorted(
            {node.networks[port] for port, one in node.port_wishes.items() if one.rdma.transport == transport}
        )
        yield Hit(
            setting="RDMA transport",
            found=transport,
            wanted=" or ".join(able),
            message=f"{{where}}: its platform cannot do {transport} (network {', '.join(networks)})",
            help="put its ports into another network, or set the network's rdma.transport",
        )


RULE = NodeRule("FAB020", "transport-not-supported", Severity.ERROR, "0.1", "intent", _check, plan=True)
