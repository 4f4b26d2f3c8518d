"""RoCE or CNP packets change their class on the way.

What it checks
    The walk of a packet from a host port over its leaf to the next switch. The RoCE DSCP that the host
    writes has the priority that the host is meant to give it at every port that classifies it, and the DSCP
    of CNPs nowhere enters a priority with PFC unless it already does on the host. The first hop where the
    class changes is named.

Why it breaks RDMA
    PFC, ECN and buffers belong to a priority. A packet that enters another one at a single hop is best
    effort there: dropped under load, while every port's own settings look complete.
    Source: kubernetes.recipes "Dell switch RoCEv2 PFC ECN DSCP" (frames without trust are best effort).

Wrong
    interface Ethernet9/1 without trust, or whose map sends DSCP 26 to priority 0

Right
    trust dscp, and DSCP 26 -> priority 3, on every port of the network

When to waive it
    For a hop that RoCE traffic does not pass.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import dscp_trusted, paused
from rdma_fabric.checker.scopes import Hit, PathRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import group_of
from rdma_fabric.state import UNKNOWN, Absent, NotJudged, QosState, known, value_or

Found = Iterator[tuple[int, Hit]]


def _check(path: tuple[PortView, ...]) -> Found:
    host = path[0]
    if host.wanted.qos.trust == "pcp":
        # The class is carried by the VLAN tag; the DSCP decides nothing.
        return
    marking = host.state.marking
    forced = value_or(marking.traffic_class, None)
    tos = forced if forced is not None else marking.rdma_cm_tos
    if not isinstance(tos, Absent):
        yield from _roce(path, tos >> 2)
    cnp = host.assumed.marking.cnp_dscp
    if not isinstance(cnp, Absent) and (host.wishes.dcqcn is None or host.wishes.dcqcn.enabled):
        yield from _cnp(path, cnp)


def _roce(path: tuple[PortView, ...], dscp: int) -> Found:
    start = _priority(path[0].wanted.qos, dscp)
    found = [_try(port, dscp) for port in path]
    for hop in _first_node([hop for hop, here in enumerate(found) if here not in (start, None)]):
        here = _priority(path[hop].assumed.qos, dscp)
        told = f"RoCE packets (DSCP {dscp}) of priority {start} become priority {here}"
        yield hop, _hit(path[hop], told, dscp, start)


def _try(port: PortView, dscp: int) -> int | None:
    """The priority on arrival; None for a port of which nobody says how it classifies."""
    try:
        return _priority(port.assumed.qos, dscp)
    except NotJudged as reason:
        if reason.absent is UNKNOWN:
            raise
        return None


def _cnp(path: tuple[PortView, ...], dscp: int) -> Found:
    if _priority(path[0].assumed.qos, dscp) in paused(path[0].assumed.qos):
        return
    for hop in _first_node([hop for hop, port in enumerate(path) if _enters_lossless(port, dscp)]):
        told = f"CNPs (DSCP {dscp}) enter the lossless priority {_priority(path[hop].assumed.qos, dscp)}"
        yield hop, _hit(path[hop], told, dscp, None)


def _enters_lossless(port: PortView, dscp: int) -> bool:
    priority = _try(port, dscp)
    return priority in paused(port.assumed.qos) and priority in _owned(port)


def _owned(port: PortView) -> frozenset[int]:
    """Priorities that are to be paused, by wish or else by default."""
    return paused(port.assumed.qos if "qos.pfc" in port.by_default else port.wanted.qos)


def _first_node(hops: list[int]) -> list[int]:
    """Hops of the first node with one: 1 and 2 are the two sides of the leaf."""
    return [hop for hop in hops if hop == hops[0] or (hops[0], hop) == (1, 2)]


def _priority(qos: QosState, dscp: int) -> int:
    """The priority that a packet with this DSCP gets on arrival; without trust the port's default, 0."""
    if not dscp_trusted(qos):
        return 0
    return known(qos.dscp_to_priority, "DSCP map")[dscp]


def _hit(port: PortView, told: str, dscp: int, priority: int | None) -> Hit:
    setting = "qos.dscp_to_priority" if dscp_trusted(port.assumed.qos) else "qos.trust"
    group = group_of(setting)
    wanted = f"{dscp}->{priority}" if setting == "qos.dscp_to_priority" and priority is not None else ""
    if setting not in port.by_default and group.show(port.wanted) != group.show(port.state):
        wanted = group.show(port.wanted)
    return Hit(
        setting=setting,
        found="none"
        if port.assumed.qos.trust == "port" and setting == "qos.trust"
        else group.show(port.assumed),
        wanted=wanted or ("dscp" if setting == "qos.trust" else "a lossy priority"),
        message=f"{{where}}: {told}",
        reason="packets are classified differently on this port only",
        help=f"correct the {group.title} of this port, so that DSCP {dscp} keeps its class",
        rank=30,
    )


RULE = PathRule("FAB025", "class-changes-on-path", Severity.ERROR, "0.1", "path", _check)
