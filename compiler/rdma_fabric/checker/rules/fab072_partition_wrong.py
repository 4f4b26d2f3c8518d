"""A partition cannot be what it says.

What it checks
    P_Keys that two partitions share (the membership bit does not count, so 15 bits decide), the reserved
    0x7fff under another name than Default, names that are used twice, and members that name no port: a
    selector that fits none, a host port without a GUID.

Why it breaks RDMA
    OpenSM merges rules with the same P_Key: two tenants then share one partition. A member that no rule
    names has no path to the others.
    Source: OpenSM, osm_prtn.c (osm_prtn_make_new) and doc/partition-config.txt.

Wrong
    partitions:
      - {name: tenantA, pkey: 0x0010, members: {full: ["gpu[01-08]"]}}
      - {name: tenantB, pkey: 0x0010, members: {full: ["gpu[09-16]"]}}

Right
    partitions:
      - {name: tenantA, pkey: 0x0010, members: {full: ["gpu[01-08]"]}}
      - {name: tenantB, pkey: 0x0020, members: {full: ["gpu[09-16]"]}}

When to waive it
    A selector that fits no host yet, until the hosts are in the inventory.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._infiniband import network, subnets, where
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import DEFAULT_PKEY
from rdma_fabric.inventory.subnets import Subnet


def _check(judged: Judged) -> Iterator[Hit]:
    for subnet in subnets(judged):
        yield from _keys(judged, subnet)
        for one in subnet.troubles:
            yield Hit(
                setting=f"partition {subnet.manager.partitions[int(one.path[1])].name} members",
                found=str(subnet.manager.partitions[int(one.path[1])].members[one.path[3]][int(one.path[4])]),  # type: ignore[index]
                wanted="ports of this network with a GUID",
                message=f"partition {subnet.manager.partitions[int(one.path[1])].name}: {one.message}",
                help=one.help,
                position=where(judged, subnet, *one.path),
                places=network(subnet),
            )


def _keys(judged: Judged, subnet: Subnet) -> Iterator[Hit]:
    keys: dict[int, str] = {}
    names: set[str] = set()
    for index, one in enumerate(subnet.manager.partitions):
        found, wanted, message = f"0x{one.pkey:04x}", "", ""
        if one.pkey in keys:
            wanted = f"another than that of {keys[one.pkey]}"
            message = f"partitions {keys[one.pkey]} and {one.name} have the same P_Key: they would be one"
        elif one.name in names:
            found, wanted = one.name, "a name of its own"
            message = f"two partitions are called {one.name}"
        elif (one.pkey == DEFAULT_PKEY) != (one.name == "Default"):
            wanted = "0x7fff for Default, and for no other"
            message = f"partition {one.name} has P_Key 0x{one.pkey:04x}; 0x7fff is the default partition's"
        keys.setdefault(one.pkey, one.name)
        names.add(one.name)
        if message:
            yield Hit(
                setting=f"partition {one.name}",
                found=found,
                wanted=wanted,
                message=message,
                help="give every partition a P_Key from 0x0001 to 0x7ffe of its own",
                position=where(judged, subnet, "partitions", index, "pkey"),
                places=network(subnet),
            )


RULE = FabricRule("FAB072", "partition-wrong", Severity.ERROR, "0.1", "infiniband", _check, plan=True)
