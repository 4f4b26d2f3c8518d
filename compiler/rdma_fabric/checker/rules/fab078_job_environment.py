"""The variables of jobs (NCCL, UCX) do not fit the classes and ports.

What it checks
    The variables that the intent gives, and those that an observed host has besides. RoCE: traffic classes
    (NCCL_IB_TC, NCCL_IB_FIFO_TC, UCX_IB_TRAFFIC_CLASS) are ToS bytes whose DSCP leads to a lossless priority,
    service levels do where the priority of a VLAN tag is trusted; the GID index is one for RoCE v2 on every
    port of jobs. Device lists (NCCL_IB_HCA, UCX_NET_DEVICES) give the host's rails, all of them and nothing
    else. InfiniBand: NCCL_IB_SL is the service level of a class, NCCL_IB_PKEY (an index) is inside the P_Key
    table that the host's ports get, and NCCL_IB_TC is not set, which RoCE alone uses.

Why it breaks RDMA
    A job that marks for itself goes past everything that switches and NICs are set to: with another DSCP, or
    the DSCP in place of the ToS byte, it runs as best effort and drops at the first congestion. A GID for
    RoCE v1 is not routed and has no DSCP. A level without a class shares the wrong lane; an index beyond the
    table makes every connection fail; a device list that also fits storage NICs takes those for the job.
    Source: NCCL src/transport/net_ib (NCCL_IB_*), its documentation (lists of names); UCX
    src/uct/ib/base/ib_iface.c. In InfiniBand the traffic class goes into the GRH only.

Wrong
    hosts: {environment: {NCCL_IB_TC: 26}}     # this is DSCP 6; beginnings in lists: mlx5_1 is also mlx5_10

Right
    hosts: {nccl: true}                        # 106 for DSCP 26, =mlx5_0,mlx5_1 ... for the rails

When to waive it
    For variables that a job overrides anyway.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from rdma_fabric.checker.rules._common import lossless_priorities, some
from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.hardware import PortHardware
from rdma_fabric.intent.job import of_jobs, picked
from rdma_fabric.inventory.subnets import ib_classes
from rdma_fabric.resolve import class_of_kind
from rdma_fabric.settings import ranges
from rdma_fabric.state import Absent, PortSettings

_TOS = ("NCCL_IB_TC", "NCCL_IB_FIFO_TC", "UCX_IB_TRAFFIC_CLASS")
_LEVELS = ("NCCL_IB_SL", "UCX_IB_SL")
_GIDS = ("NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX")
_AUTO = ("-1", "auto")
_C_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")


def _check(node: NodeView) -> Iterator[Hit]:
    if not node.is_host:
        return
    job = _Job(node)
    if job.fabric:
        yield from _infiniband(job)
    if job.roce:
        yield from _marks(job)
        yield from _levels(job)
        yield from _gids(job)
        yield from _version(job)
    if job.ports:
        yield from _devices(job)
        yield from _sockets(job)


@dataclass(frozen=True)
class _Job:
    node: NodeView

    @cached_property
    def variables(self) -> dict[str, str]:
        """What jobs get: the intent's, and what an observed host has that the intent leaves alone."""
        ours = dict(self.node.wanted.system.environment)
        both = {**dict(self.node.state.system.environment), **ours}
        return {name: value for name, value in both.items() if isinstance(value, str) and value}

    @cached_property
    def ports(self) -> list[PortHardware]:
        """Ports whose RDMA devices jobs use."""
        return of_jobs(self.node.hw.ports)

    @cached_property
    def roce(self) -> list[PortHardware]:
        """Those of them that are in RoCE networks."""
        return [one for one in self.ports if self.transport(one) == "rocev2"]

    @cached_property
    def fabric(self) -> list[PortSettings]:
        """InfiniBand ports, whether jobs use them or not."""
        ports = [port.settings for port in self.node.wanted.ports]
        return [one for one in ports if not isinstance(one.ib.link, Absent)]

    def transport(self, port: PortHardware) -> str:
        """The transport of a port's network."""
        return self.node.port_wishes[port.name].rdma.transport

    def wanted(self, port: PortHardware) -> PortSettings:
        """A port as the intent wants it."""
        return next(one.settings for one in self.node.wanted.ports if one.name == port.name)

    def number(self, name: str) -> int | None:
        """A variable as its library reads it; None where it is not set, left to the library, or no number."""
        value = self.variables.get(name, "")
        if name.startswith("NCCL_"):
            return _c_number(value)
        return int(value) if value.isdigit() else None

    def lossless(self, port: PortHardware) -> tuple[int, ...]:
        """Lossless priorities of a port; none where nothing is paused."""
        wishes = self.node.port_wishes[port.name]
        if wishes.pfc is not None and not wishes.pfc.enabled:
            return ()
        return lossless_priorities(wishes)

    def hit(
        self,
        name: str,
        wanted: str,
        message: str,
        severity: Severity | None = None,
        found: str = "",
        reason: str = "",
    ) -> Hit:
        """One breach of one variable."""
        ours = name in dict(self.node.wanted.system.environment)
        where = (
            f"hosts.environment.{name}" if ours else f"{name} on the host, or give it in hosts.environment"
        )
        return Hit(
            setting=f"environment.{name}",
            found=found or self.variables[name],
            wanted=wanted,
            message=f"{{where}}: {message}",
            help=f"correct {where}" if not ours else f"correct {where}, or remove it",
            reason=reason,
            severity=severity,
        )


def _c_number(value: str) -> int | None:
    """0x68 and 0150 are 104 for NCCL, whose parameters go through strtoll with base 0 (its param.cc)."""
    if not _C_NUMBER.fullmatch(value):
        return None
    return int(value, 16 if value[1:2] in ("x", "X") else 8 if value[0] == "0" else 10)


# ---------------------------------------------------------------- RoCE


def _marks(job: _Job) -> Iterator[Hit]:
    for name in _TOS:
        value = job.variables.get(name, "")
        tos = job.number(name)
        if tos is None or tos > 255:
            if value and value not in _AUTO:
                yield job.hit(name, "a ToS byte", f"{name} is no ToS byte", Severity.WARNING)
            continue
        wrong = {port.name: found for port in job.roce if (found := _lossy(job, port, tos, name))}
        if not wrong:
            continue
        priority, legal = next(iter(wrong.values()))
        forced = all(isinstance(job.wanted(port).marking.traffic_class, int) for port in job.roce)
        message = f"{name} marks RoCE for priority {priority} on {some(wrong)}, which is not lossless"
        yield job.hit(
            name,
            legal,
            f"{message}; the NIC forces its own mark" if forced else message,
            Severity.WARNING if forced else None,
            f"ToS {tos} (DSCP {tos >> 2}, priority {priority})",
            "the variable takes the ToS byte, which is the DSCP times four",
        )


def _lossy(job: _Job, port: PortHardware, tos: int, name: str) -> tuple[int, str] | None:
    """(priority, what would fit) where a ToS byte leads to a lossy priority."""
    qos, wishes = job.wanted(port).qos, job.node.port_wishes[port.name]
    lossless = job.lossless(port)
    if job.wanted(port).marking.rdma_cm_tos == tos & 0xFC:
        return None  # the port's own mark is wrong in the same way: that is a finding of its own
    if not lossless or qos.trust not in ("dscp", "both") or isinstance(qos.dscp_to_priority, Absent):
        return None
    priority = qos.dscp_to_priority[tos >> 2]
    cnp = class_of_kind(wishes, "cnp") if name == "NCCL_IB_FIFO_TC" else None
    if priority in lossless or (cnp is not None and priority == cnp.priority):
        return None
    marks = [dscp for dscp, one in enumerate(qos.dscp_to_priority) if one in lossless]
    legal = f"ToS {ranges(dscp << 2 for dscp in marks)} (DSCP {ranges(marks)}, priority {ranges(lossless)})"
    return priority, legal


def _levels(job: _Job) -> Iterator[Hit]:
    """With trust in VLAN tags the service level is the priority."""
    ports = [one for one in job.roce if job.wanted(one).qos.trust == "pcp" and job.lossless(one)]
    for name in _LEVELS:
        level = job.number(name)
        wrong = [one for one in ports if level is not None and level & 7 not in job.lossless(one)]
        if wrong and level is not None:
            legal = ranges(job.lossless(wrong[0]))
            names = some(one.name for one in wrong)
            yield job.hit(name, legal, f"{name} puts RoCE of {names} on priority {level & 7}, which is lossy")


def _gids(job: _Job) -> Iterator[Hit]:
    seen = {port.name: port.settings.nic.gids for port in job.node.state.ports}
    for name in _GIDS:
        index = job.number(name)
        tables = {one.name: seen.get(one.name) for one in job.roce}
        wrong = {port: gids for port, gids in tables.items() if isinstance(gids, tuple) and index not in gids}
        if index is not None and wrong:
            legal = "; ".join(f"{ranges(gids)} on {port}" for port, gids in wrong.items())
            message = f"{name} is no GID for RoCE v2 of {some(wrong)}"
            yield job.hit(name, legal, message)


def _version(job: _Job) -> Iterator[Hit]:
    if job.number("NCCL_IB_ROCE_VERSION_NUM") not in (None, 2):
        yield job.hit("NCCL_IB_ROCE_VERSION_NUM", "2", "NCCL takes GIDs that are not for RoCE v2")


# ---------------------------------------------------------------- devices and interfaces


def _devices(job: _Job) -> Iterator[Hit]:
    if job.number("NCCL_IB_DISABLE"):
        yield job.hit("NCCL_IB_DISABLE", "0", "NCCL does not use RDMA", Severity.WARNING)
    ours = {one.rdma for one in job.ports}
    every = {one.rdma for one in job.node.hw.ports if one.rdma}
    for name in ("NCCL_IB_HCA", "UCX_NET_DEVICES"):
        value = job.variables.get(name, "")
        if not value or value == "all":
            continue
        chosen = picked(value, every, exact=name.startswith("UCX"))
        wanted = ",".join(one.rdma for one in job.ports)
        if not chosen & ours:
            yield job.hit(name, wanted, f"{name} takes none of the devices of jobs")
        elif ours - chosen:
            yield job.hit(name, wanted, f"{name} leaves out {_names(ours - chosen)}", Severity.WARNING)
        elif chosen - ours:
            message = f"{name} also takes {_names(chosen - ours)}, which is no rail"
            yield job.hit(name, wanted, message, Severity.WARNING)
        elif len({job.transport(one) for one in job.ports if one.rdma in chosen}) > 1:
            message = f"{name} takes devices of RoCE and of InfiniBand networks"
            yield job.hit(name, "devices of one transport", message, Severity.WARNING)


def _names(devices: Iterable[str]) -> str:
    return some(sorted(devices))


def _sockets(job: _Job) -> Iterator[Hit]:
    value = job.variables.get("NCCL_SOCKET_IFNAME", "")
    if not value or value.startswith("^"):
        return
    named = picked(value, (one.name for one in job.node.hw.ports))
    if named:
        message = f"NCCL_SOCKET_IFNAME sends the bootstrap of jobs through {_names(named)}"
        yield job.hit("NCCL_SOCKET_IFNAME", "a management interface", message, Severity.NOTE)


# ---------------------------------------------------------------- InfiniBand


def _infiniband(job: _Job) -> Iterator[Hit]:
    node, ports = job.node, [one for one in job.node.hw.ports if job.transport(one) == "infiniband"]
    levels = {one.sl for port in ports for one in ib_classes(node.port_wishes[port.name]).values()} or {0}
    for name in _LEVELS:
        level = job.number(name)
        if level is not None and level not in levels:
            legal = " or ".join(str(one) for one in sorted(levels, key=str))
            yield job.hit(name, legal, f"{name} is {level} on an InfiniBand host", Severity.WARNING)
    index = job.number("NCCL_IB_PKEY")
    sizes = [len(one.ib.pkeys) for one in job.fabric if isinstance(one.ib.pkeys, tuple)]
    if index is not None and sizes and index >= min(sizes):
        legal = f"below {min(sizes)}, the number of the port's P_Keys"
        yield job.hit("NCCL_IB_PKEY", legal, "NCCL_IB_PKEY is beyond the P_Key table", Severity.WARNING)
    if "NCCL_IB_TC" in job.variables and len(job.fabric) == len(node.wanted.ports):
        message = "NCCL_IB_TC is set on an InfiniBand host"
        yield job.hit("NCCL_IB_TC", "not set: RoCE alone uses it", message, Severity.WARNING)


RULE = NodeRule("FAB078", "job-environment", Severity.ERROR, "0.1", "qos", _check, plan=True)
