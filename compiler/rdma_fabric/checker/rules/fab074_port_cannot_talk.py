"""A host port has nobody to talk to.

What it checks
    Every host port of an InfiniBand network whose GUID is known is a member of a partition. A partition that
    has host ports as limited members has a full host member as well: limited members do not reach each
    other.

Why it breaks RDMA
    Packets whose P_Key does not fit are dropped at the adapter: connections to such a port time out.
    Source: InfiniBand Architecture Specification, volume 1, 10.9 (partitioning).

Wrong
    - {name: Default, pkey: 0x7fff, members: {limited: [ALL], full: [SELF]}}
    and no other partition for the hosts

Right
    - {name: Default, pkey: 0x7fff, members: {limited: [ALL], full: [SELF]}}
    - {name: compute, pkey: 0x0010, members: {full: ["role=host"]}}

When to waive it
    For a host that is in the rack and in no partition yet.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._infiniband import subnets, where
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.subnets import FULL, Subnet, port_keys


def _check(judged: Judged) -> Iterator[Hit]:
    for subnet in subnets(judged):
        if subnet.manager.nodes:
            yield from _ports(judged, subnet)


def _ports(judged: Judged, subnet: Subnet) -> Iterator[Hit]:
    tables = {
        end: port_keys(subnet.partitions, subnet.guids[end], ())
        for end in subnet.ports
        if end in subnet.guids
    }
    full = {key for keys in tables.values() for key in keys if key & FULL}
    own = set(subnet.managers)
    for end, keys in tables.items():
        if end.node in own:
            continue
        reach = [key for key in keys if key & FULL or key | FULL in full]
        if not reach:
            limited = ", ".join(f"0x{key:04x}" for key in keys)
            yield Hit(
                setting="partition membership",
                found=f"limited member of {limited}, as everybody" if keys else "none",
                wanted="full member of a partition, or one that has full members",
                message="{where} cannot talk to any other host port",
                help="make it a member of a partition in subnet_manager.partitions",
                position=where(judged, subnet, "partitions"),
                places=(Place(end.node, end.port),),
            )


RULE = FabricRule("FAB074", "port-cannot-talk", Severity.ERROR, "0.1", "infiniband", _check, plan=True)
