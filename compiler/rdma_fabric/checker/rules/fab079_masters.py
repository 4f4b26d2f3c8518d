"""A subnet does not have exactly one master, or no standby is ready.

What it checks
    Where the nodes of a subnet manager were read: how many of them are master, and that those which are to
    be standby are. A manager that does not run at all is another finding.

Why it breaks RDMA
    Two masters program the subnet against each other (two parts of a subnet that lost their link, or another
    key); without a standby the next failure of the master leaves the subnet without one.
    Source: InfiniBand Architecture Specification, volume 1, 14.4.1 (SM state machine).

Wrong
    sminfo on both nodes says SMINFO_MASTER

Right
    one says SMINFO_MASTER, the other SMINFO_STANDBY

When to waive it
    While one of the two nodes is being repaired.
"""

from collections.abc import Iterator, Mapping

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._infiniband import network, subnets
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.subnets import Subnet

_EXPLAINS = ("sm.role",)


def _check(judged: Judged) -> Iterator[Hit]:
    for subnet in subnets(judged):
        seen = {
            name: judged.views[name].state.system.sm
            for name in subnet.managers
            if name in judged.views and judged.views[name].observed
        }
        roles = {name: sm.role for name, sm in seen.items() if isinstance(sm.role, str)}
        stopped = {name for name, sm in seen.items() if sm.running is False}
        yield from _judge(subnet, roles, stopped)


def _judge(subnet: Subnet, roles: Mapping[str, str], stopped: set[str]) -> Iterator[Hit]:
    masters = [name for name, role in roles.items() if role == "master"]
    if len(masters) > 1:
        yield Hit(
            setting="subnet manager",
            found=f"masters {', '.join(masters)}",
            wanted="one master",
            message=f"network {subnet.network} has {len(masters)} masters",
            help="look for a lost link between the two, or a second sm_key",
            places=tuple(Place(name) for name in masters),
            explains=_EXPLAINS,
        )
    elif len(roles) == len(subnet.managers):
        if roles and not masters:
            meant = [
                name for name, sm in subnet.managers.items() if sm.role == "master" and name not in stopped
            ]
            yield Hit(
                setting="subnet manager",
                found="no master",
                wanted="one master",
                message=f"network {subnet.network} has no master",
                help="run `fabric apply` for its subnet managers, and look at their logs",
                places=tuple(Place(name) for name in meant) or network(subnet),
                explains=_EXPLAINS,
            )
        yield from _standby(subnet, roles, stopped)


def _standby(subnet: Subnet, roles: Mapping[str, str], stopped: set[str]) -> Iterator[Hit]:
    missing = [
        name for name, role in roles.items() if role not in ("master", "standby") and name not in stopped
    ]
    if missing:
        yield Hit(
            setting="subnet manager",
            found=f"{roles[missing[0]]} on {missing[0]}",
            wanted="standby",
            message=f"network {subnet.network} has no standby on {', '.join(missing)}",
            help="run `fabric apply` for that node",
            places=tuple(Place(name) for name in missing),
            explains=_EXPLAINS,
        )


RULE = FabricRule("FAB079", "masters", Severity.ERROR, "0.1", "infiniband", _check)
