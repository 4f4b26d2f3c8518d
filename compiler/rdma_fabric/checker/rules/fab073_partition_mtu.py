"""A partition's MTU is not what its ports can do, or not what the intent's RDMA MTU is.

What it checks
    The MTU of each partition's IPoIB group against `rdma.mtu`: above it is an error, below it a warning.
    Where ports were read, also the NeighborMTU that a link has against both.

Why it breaks RDMA
    A port that cannot do the group's MTU cannot join it, so that its IPoIB interface never works. A group at
    2048 (OpenSM's default, code 4) limits IPoIB and multicast although the links carry 4096.
    Source: OpenSM issue 31 and doc/partition-config.txt.

Wrong
    rdma: {transport: infiniband, mtu: 2048} with a partition of mtu: 4096

Right
    rdma: {transport: infiniband, mtu: 4096} with partitions of mtu: 4096

When to waive it
    A partition that is kept at 2048 for old adapters on purpose.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._infiniband import hosts, index_of, network, subnets, where
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.subnets import Subnet
from rdma_fabric.state import Absent


def _check(judged: Judged) -> Iterator[Hit]:
    for subnet in subnets(judged):
        need = subnet.wishes.rdma.mtu
        for one in subnet.partitions.rows:
            if not one.ipoib or one.mtu == need:
                continue
            above = one.mtu > need
            yield Hit(
                setting=f"partition {one.name} mtu",
                found=str(one.mtu),
                wanted=f"{'at most' if above else ''} {need}".strip(),
                message=f"the group of partition {one.name} has MTU {one.mtu}, the RDMA MTU is {need}",
                help=f"set its mtu to {need}, or rdma.mtu to {one.mtu}",
                severity=Severity.ERROR if above else Severity.WARNING,
                position=where(judged, subnet, "partitions", index_of(subnet, one.name), "mtu"),
                places=network(subnet),
            )
        yield from _links(judged, subnet)


def _links(judged: Judged, subnet: Subnet) -> Iterator[Hit]:
    groups = [one.mtu for one in subnet.partitions.rows if one.ipoib]
    need = max([subnet.wishes.rdma.mtu, *groups])
    for end, ib in hosts(judged, subnet):
        if not isinstance(ib.mtu, Absent) and ib.mtu < need:
            yield Hit(
                setting="ib.mtu",
                found=f"NeighborMTU {ib.mtu}",
                wanted=f"at least {need}",
                message=f"{{where}}: its link carries MTU {ib.mtu}, the intent needs {need}",
                help="both ends of the cable must be able to do it (smpquery portinfo: MtuCap)",
                places=(Place(end.node, end.port),),
            )


RULE = FabricRule("FAB073", "partition-mtu", Severity.ERROR, "0.1", "infiniband", _check)
