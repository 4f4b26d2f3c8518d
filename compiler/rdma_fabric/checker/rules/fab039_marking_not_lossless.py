"""RoCE traffic is marked for a class that is not lossless.

What it checks
    On host ports whose wishes have a lossless class: the DSCP that the host writes into RoCE packets (the
    ToS of RDMA-CM connections, or the traffic class that the NIC forces) leads to a priority with PFC. Where
    the intent gives no DSCP to mark with (its class has none) the kernel's default counts, which is ToS 0.
    A ToS byte is the DSCP times four plus two ECN bits: 104 and 106 are DSCP 26, but 26 is DSCP 6.

Why it breaks RDMA
    The lossless class stays empty and RoCE runs as best effort: everything looks configured, and the first
    congestion drops packets.
    Source: RFC 2474 and RFC 3168 (the ToS byte); Linux rdma_cm configfs default_roce_tos.

Wrong
    echo 26 > .../default_roce_tos     # this is DSCP 6

Right
    echo 104 > .../default_roce_tos    # DSCP 26

When to waive it
    For a host whose RDMA traffic is meant to be lossy.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import lossless_priorities
from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.resolve import roce_class
from rdma_fabric.settings import ranges
from rdma_fabric.state import Absent, known, value_or


def _check(port: PortView) -> Iterator[Hit]:
    lossless = lossless_priorities(port.wishes)
    pfc = port.wishes.pfc
    if not port.is_host or not lossless or (pfc is not None and not pfc.enabled):
        return
    if known(port.wanted.qos.trust, "trust") == "pcp":
        return
    marking = port.assumed.marking
    forced = value_or(marking.traffic_class, None)
    name, tos = ("rdma_cm_tos", marking.rdma_cm_tos) if forced is None else ("traffic_class", forced)
    if isinstance(tos, Absent):
        return
    # The map that the intent gives the host: a wrong map on the device is another finding.
    priority = known(port.wanted.qos.dscp_to_priority, "DSCP map")[tos >> 2]
    if priority in lossless:
        return
    yield Hit(
        setting=f"marking.{name}",
        found=f"ToS {tos} (DSCP {tos >> 2}, priority {priority})",
        wanted=_wanted(port, lossless),
        message=f"{{where}}: RoCE traffic is marked for priority {priority}, which is not lossless",
        help="mark RoCE with the lossless class's DSCP: hosts.roce_class, or `fabric apply` for this node",
        rank=20,
    )


def _wanted(port: PortView, lossless: tuple[int, ...]) -> str:
    tos = port.wanted.marking.rdma_cm_tos
    roce = roce_class(port.wishes)
    if isinstance(tos, int) and roce is not None and roce.lossless:
        return f"ToS {tos} (DSCP {tos >> 2}, priority {roce.priority})"
    return f"a DSCP of priority {ranges(lossless)}"


RULE = PortRule("FAB039", "marking-not-lossless", Severity.ERROR, "0.1", "qos", _check)
