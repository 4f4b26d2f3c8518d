"""A host is slower than the rate of its partition.

What it checks
    The `rate` of a partition against the speed of every host port that is a member: the planned speed, or the
    negotiated one where the port was read.

Why it breaks RDMA
    A port whose link is slower than the group's rate cannot join the IPoIB broadcast group: its interface
    stays without connectivity while native RDMA works.
    Source: doc/partition-config.txt of OpenSM (rate); InfiniBand Architecture Specification, 15.2.5.17.

Wrong
    - {name: tenantA, pkey: 0x0010, rate: 400, members: {full: ["role=host"]}}
    with hosts at 200G

Right
    - {name: tenantA, pkey: 0x0010, rate: 200, members: {full: ["role=host"]}}

When to waive it
    For hosts that do not use IPoIB in this partition.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._infiniband import index_of, subnets, where
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.subnets import Subnet, kind_in
from rdma_fabric.state import Partition


def _check(judged: Judged) -> Iterator[Hit]:
    for subnet in subnets(judged):
        for one in subnet.partitions.rows:
            if one.ipoib and isinstance(one.rate, str):
                yield from _members(judged, subnet, one, float(one.rate))


def _members(judged: Judged, subnet: Subnet, one: Partition, rate: float) -> Iterator[Hit]:
    for end in subnet.ports:
        view = judged.ports.get(end.node, {}).get(end.port)
        if view is None or not kind_in(one, subnet.guids.get(end, ""), ()):
            continue
        speed = view.speed_gbps
        if isinstance(speed, int) and 0 < speed < rate:
            yield Hit(
                setting=f"partition {one.name} rate",
                found=f"{one.rate} Gbit/s",
                wanted=f"at most {speed}",
                message=f"{{where}} has {speed} Gbit/s and cannot join the group of partition {one.name}",
                help="use the lowest rate of its members, or leave the rate to the subnet manager",
                position=where(judged, subnet, "partitions", index_of(subnet, one.name), "rate"),
                places=(Place(end.node, end.port),),
            )


RULE = FabricRule("FAB080", "partition-rate", Severity.WARNING, "0.1", "infiniband", _check)
