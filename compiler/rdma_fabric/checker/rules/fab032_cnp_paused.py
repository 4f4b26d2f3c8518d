"""Congestion notifications enter a priority with PFC.

What it checks
    The priority of the CNPs' DSCP on every port (a host's own CNP DSCP, the intent's on switches) is not
    one that this port pauses. Not checked with dcqcn: false.

Why it breaks RDMA
    A CNP that waits behind a pause arrives when it is too late: the sender goes on at full speed while the
    network asks it to stop.
    Source: DCQCN paper (SIGCOMM 2015), section 3. Defaults disagree: CNP DSCP 48 in most guides, 4 in some
    NIC tooling.

Wrong
    a host whose CNP DSCP is 26, where DSCP 26 is the lossless class

Right
    classes:
      cnp: {priority: 6, dscp: [48], scheduler: strict}

When to waive it
    Never on a fabric that uses DCQCN.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import dscp_trusted, named_dscps, paused
from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.resolve import class_of_kind
from rdma_fabric.settings import group_of
from rdma_fabric.state import Absent, known


def _check(port: PortView) -> Iterator[Hit]:
    if port.wishes.dcqcn is not None and not port.wishes.dcqcn.enabled:
        return
    dscp = _dscp(port)
    if dscp is None or not dscp_trusted(port.assumed.qos):
        return
    priority = known(port.assumed.qos.dscp_to_priority, "DSCP map")[dscp]
    if priority not in paused(port.assumed.qos):
        return
    setting = _cause(port)
    yield Hit(
        setting=setting,
        found=group_of(setting).show(port.assumed),
        wanted=group_of(setting).show(port.wanted) if _off(port, setting) else "a DSCP of a lossy priority",
        message=f"{{where}}: CNPs (DSCP {dscp}) are in priority {priority}, which is paused",
        help="put the CNPs' DSCP into a lossy priority on this port",
        rank=25,
    )


def _dscp(port: PortView) -> int | None:
    if port.is_host:
        own = port.assumed.marking.cnp_dscp
        return None if isinstance(own, Absent) else own
    cnp = class_of_kind(port.wishes, "cnp")
    return next(iter(named_dscps(cnp)), None) if cnp else None


def _cause(port: PortView) -> str:
    """The setting that is not as wished, else the map."""
    for setting in ("marking.cnp_dscp", "qos.dscp_to_priority", "qos.pfc"):
        if _off(port, setting):
            return setting
    return "marking.cnp_dscp" if port.is_host else "qos.dscp_to_priority"


def _off(port: PortView, setting: str) -> bool:
    show = group_of(setting).show
    return show(port.state) != show(port.wanted)


RULE = PortRule("FAB032", "cnp-paused", Severity.ERROR, "0.1", "qos", _check)
