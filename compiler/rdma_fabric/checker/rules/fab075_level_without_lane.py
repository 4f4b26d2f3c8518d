"""A service level has no lane, or two classes have the same one.

What it checks
    The service level of every partition belongs to a class; classes have levels of their own; their lanes are
    fewer than the lanes in use (`subnet_manager.vls`), and than those that observed host ports and their
    links have. A warning says that a strict class and one with a share have the same lane.

Why it breaks RDMA
    Traffic on a level without a class shares the lane of the lowest class, and one whose lane does not exist
    is dropped (lane 15). OpenSM folds lanes that a link does not have into those that it has: of 4 lanes,
    lane 5 is lane 1 (osm_qos.c). Two classes on one level are one class. Arbitration knows lanes only: a
    lane in the high-priority table goes first with all that is on it, so that the strict class wins and
    takes the other one along.
    Source: doc/QoS_management_in_OpenSM.txt; InfiniBand Architecture Specification, volume 1, 7.6.6 and
    7.6.9.

Wrong
    classes: {default: {priority: 0, dscp: rest, sl: 0}}
    partitions: [{name: tenantA, pkey: 0x0010, sl: 1}]

Right
    classes: {default: {priority: 0, dscp: rest, sl: 0}, compute: {priority: 1, sl: 1}}
    partitions: [{name: tenantA, pkey: 0x0010, sl: 1}]

When to waive it
    Where a level shares the lane of another on purpose; say so with `vl`.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._infiniband import hosts, index_of, network, subnets, where
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.subnets import Subnet, ib_classes, lanes_of
from rdma_fabric.state import Absent


def _check(judged: Judged) -> Iterator[Hit]:
    for subnet in subnets(judged):
        classes = ib_classes(subnet.wishes)
        yield from _classes(judged, subnet)
        yield from _strict(judged, subnet)
        yield from _links(judged, subnet)
        levels = {one.sl for one in classes.values() if one.sl is not None}
        for one in subnet.partitions.rows:
            if one.sl not in levels and (levels or one.sl):
                yield Hit(
                    setting=f"partition {one.name} service level",
                    found=str(one.sl),
                    wanted="one of " + ", ".join(map(str, sorted(levels))) if levels else "0",
                    message=f"partition {one.name} has service level {one.sl}, which no class has",
                    help=f"add sl: {one.sl} to a class, or change the partition's sl",
                    position=where(judged, subnet, "partitions", index_of(subnet, one.name), "sl"),
                    places=network(subnet),
                )


def _classes(judged: Judged, subnet: Subnet) -> Iterator[Hit]:
    names = list(ib_classes(subnet.wishes))
    lanes = subnet.manager.vls
    seen: dict[int | None, str] = {}
    for name, (one, vl) in zip(names, lanes_of(subnet.wishes), strict=True):
        problem = ""
        if one.sl in seen:
            key, found, wanted = "sl", str(one.sl), f"another than that of {seen[one.sl]}"
            problem = f"classes {seen[one.sl]} and {name} have the same service level"
        elif lanes is not None and vl >= lanes:
            key, found, wanted = "vl", f"lane {vl}", f"below {lanes} (subnet_manager.vls)"
            problem = f"class {name} has lane {vl}, and only {lanes} are in use"
        seen.setdefault(one.sl, name)
        if problem:
            yield Hit(
                setting=f"class {name}",
                found=found,
                wanted=wanted,
                message=problem,
                help="give every class its own sl, and as many lanes as classes",
                position=where(judged, subnet, "..", "classes", name, key),
                places=network(subnet),
            )


def _links(judged: Judged, subnet: Subnet) -> Iterator[Hit]:
    """Links that have fewer lanes than the classes use."""
    rows = list(zip(ib_classes(subnet.wishes), lanes_of(subnet.wishes), strict=True))
    for end, ib in hosts(judged, subnet):
        if isinstance(ib.vls, Absent):
            continue
        lost = [(name, vl) for name, (_, vl) in rows if vl >= ib.vls]
        if not lost:
            continue
        own = not isinstance(ib.vl_cap, Absent) and ib.vl_cap <= ib.vls
        told = ", ".join(f"{name} (lane {vl})" for name, vl in lost)
        yield Hit(
            setting="ib.vls",
            found=f"{ib.vls} lane{'' if ib.vls == 1 else 's'}",
            wanted=f"at least {max(vl for _, vl in lost) + 1}",
            message=f"{{where}}: its {'port' if own else 'link'} has too few lanes, so that {told} is on "
            "the lane of another class",
            help="use fewer lanes (vl of the classes)"
            if own
            else "see what the other end can do (smpquery portinfo: VLCap), and max_op_vls of the running "
            "subnet manager; or use fewer lanes",
            places=(Place(end.node, end.port),),
            explains=("ib.sl_to_vl",),
        )


def _strict(judged: Judged, subnet: Subnet) -> Iterator[Hit]:
    """Classes with a share on a lane that a strict class makes go first."""
    rows = list(zip(ib_classes(subnet.wishes), lanes_of(subnet.wishes), strict=True))
    first = {vl: name for name, (one, vl) in reversed(rows) if one.scheduler == "strict"}
    for name, (one, vl) in rows:
        if one.scheduler != "strict" and vl in first:
            yield Hit(
                setting=f"class {name} lane",
                found=f"lane {vl}, as strict class {first[vl]}",
                wanted="a lane of its own, or scheduler: strict",
                message=f"class {name} shares lane {vl} with strict class {first[vl]}: both go before all "
                "others, and its share counts for nothing",
                help=f"give one of the two another vl, or say scheduler: strict for {name} too",
                severity=Severity.WARNING,
                position=where(judged, subnet, "..", "classes", name, "vl"),
                places=network(subnet),
            )


RULE = FabricRule("FAB075", "level-without-lane", Severity.ERROR, "0.1", "infiniband", _check, plan=True)
