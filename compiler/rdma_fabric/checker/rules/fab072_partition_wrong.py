"""A partition cannot be what it says.

What it checks
    P_Keys that two partitions share (the membership bit does not count, so 15 bits decide), the reserved
    0x7fff under another name than Default, names that are used twice, and members that are not what they
    seem: a selector that fits none, a host port without a GUID, a port of another network, a port that is
    named as full and as limited member, a partition without members, a port in two partitions with `index0`;
    as a note a GUID that no port of the inventory has. Warnings say that a partition is open for every port
    although another one is not, and that one has no member but switches, routers and the subnet manager. A
    note says that every port is a full member of the default partition although two others keep hosts apart.

Why it breaks RDMA
    OpenSM merges rules with the same P_Key: two tenants then share one partition. A member that no rule
    names has no path to the others. Partitions separate nothing as long as all ports share another one.
    Source: OpenSM, osm_prtn.c (osm_prtn_make_new) and doc/partition-config.txt.

Wrong
    partitions:
      - {name: tenantA, pkey: 0x0010, members: {full: ["gpu[01-08]"]}}
      - {name: tenantB, pkey: 0x0010, members: {full: ["gpu[09-16]"]}}

Right
    partitions:
      - {name: Default, pkey: 0x7fff, members: {limited: [ALL], full: [ALL_SWITCHES, SELF]}}
      - {name: tenantA, pkey: 0x0010, members: {full: ["gpu[01-08]"]}}
      - {name: tenantB, pkey: 0x0020, members: {full: ["gpu[09-16]"]}}

When to waive it
    A selector that fits no host yet, until the hosts are in the inventory.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._infiniband import index_of, network, subnets, where
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import DEFAULT_PKEY
from rdma_fabric.inventory.subnets import FULL, Subnet, Trouble, kind_in
from rdma_fabric.inventory.types import End
from rdma_fabric.state import Partition

_NO_HOSTS = {"ALL_SWITCHES", "ALL_ROUTERS", "SELF"}
_EVERYBODY = {f"{word}={kind}" for word in ("ALL", "ALL_CAS") for kind in ("full", "both")}


def _check(judged: Judged) -> Iterator[Hit]:
    for subnet in subnets(judged):
        yield from _keys(judged, subnet)
        yield from (_trouble(judged, subnet, one) for one in subnet.troubles)
        yield from _open(judged, subnet)
        yield from _first(judged, subnet)
        yield from _mute(judged, subnet)


def _trouble(judged: Judged, subnet: Subnet, one: Trouble) -> Hit:
    name, found = (one.name, "a GUID of no port") if one.name else ("Default", "no rule")
    if one.path[0] == "partitions":
        partition = subnet.manager.partitions[int(one.path[1])]
        name, found = partition.name, "none"
        if one.path[2] == "groups":
            found = partition.groups[int(one.path[3])]
        elif len(one.path) > 3:
            found = dict(partition.members)[one.path[3]][int(one.path[4])]  # type: ignore[index]
    return Hit(
        setting=f"partition {name} members",
        found=found,
        wanted="ports of this network with a GUID",
        message=f"partition {name}: {one.message}",
        help=one.help,
        severity=None if one.certain else Severity.NOTE,
        position=where(judged, subnet, *one.path),
        places=network(subnet),
    )


def _open(judged: Judged, subnet: Subnet) -> Iterator[Hit]:
    """Partitions that every port is in, beside others that keep ports apart."""
    hosts = [end for end in subnet.ports if end in subnet.guids and end.node not in subnet.managers]
    members = {
        one.name: frozenset(end for end in hosts if kind_in(one, subnet.guids[end], ()))
        for one in subnet.partitions.rows
        if one.pkey != DEFAULT_PKEY
    }
    apart = {name: ends for name, ends in members.items() if ends and len(ends) < len(hosts)}
    for one in subnet.partitions.rows:
        if not _EVERYBODY & set(one.members):
            continue
        others = [name for name in apart if name != one.name]
        if one.pkey != DEFAULT_PKEY and others:
            yield _hit(judged, subnet, one, f"and {others[0]} is not", Severity.WARNING)
        elif one.pkey == DEFAULT_PKEY and (pair := _separate(apart)):
            yield _hit(judged, subnet, one, f"so {pair[0]} and {pair[1]} reach each other", Severity.NOTE)


def _first(judged: Judged, subnet: Subnet) -> Iterator[Hit]:
    """Ports that two partitions give the first place in the table to: OpenSM takes the later one (run)."""
    taken: dict[End, str] = {}
    for one in (row for row in subnet.partitions.rows if row.index0):
        ends = [end for end in subnet.ports if kind_in(one, subnet.guids.get(end, ""), ())]
        if both := next((end for end in ends if end in taken), None):
            yield Hit(
                setting=f"partition {one.name} index0",
                found=f"also {taken[both]} at {both}",
                wanted="one partition with index0 for every port",
                message=f"partitions {taken[both]} and {one.name} both want to be first at {both}",
                help="leave index0 to one of them, or give them different members",
                position=where(judged, subnet, "partitions", index_of(subnet, one.name), "index0"),
                places=network(subnet),
            )
        taken |= dict.fromkeys(ends, one.name)


def _mute(judged: Judged, subnet: Subnet) -> Iterator[Hit]:
    """Partitions that no host is in. Of the default one every port is a member anyway."""
    for one in subnet.partitions.rows:
        members = {member.partition("=")[0] for member in one.members}
        if one.pkey != DEFAULT_PKEY and members and members <= _NO_HOSTS:
            yield Hit(
                setting=f"partition {one.name} members",
                found=", ".join(sorted(members)),
                wanted="at least two host ports",
                message=f"partition {one.name} has no host: nobody can use it",
                help="add its hosts (a selector, GUIDs, or ALL), or remove it",
                severity=Severity.WARNING,
                position=where(judged, subnet, *_path(subnet, one)),
                places=network(subnet),
            )


def _path(subnet: Subnet, one: Partition) -> tuple[str | int, ...]:
    """Where the members of a partition are said: in the intent, or in the file that it names."""
    if subnet.manager.partitions_file:
        return ("partitions_file",)
    return ("partitions", index_of(subnet, one.name), "members")


def _separate(apart: dict[str, frozenset[End]]) -> tuple[str, str] | None:
    """Two partitions that each have a host which the other has not."""
    names = list(apart)
    pairs = ((a, b) for index, a in enumerate(names) for b in names[index + 1 :])
    return next(((a, b) for a, b in pairs if apart[a] - apart[b] and apart[b] - apart[a]), None)


def _hit(judged: Judged, subnet: Subnet, one: Partition, why: str, severity: Severity) -> Hit:
    key = f"0x{one.pkey | FULL:04x}"
    return Hit(
        setting=f"partition {one.name} members",
        found=next(member for member in one.members if member in _EVERYBODY),
        wanted="the ports that are meant",
        message=f"every port is a full member of partition {one.name} ({key}), {why}",
        help="name its full members, with ALL as limited; or leave it so where nothing is to be kept apart",
        severity=severity,
        position=where(judged, subnet, "partitions", index_of(subnet, one.name), "members"),
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
