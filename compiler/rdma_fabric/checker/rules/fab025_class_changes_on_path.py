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
from rdma_fabric.state import Absent, QosState, known, value_or

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
    if not isinstance(marking.cnp_dscp, Absent):
        yield from _cnp(path, marking.cnp_dscp)


def _roce(path: tuple[PortView, ...], dscp: int) -> Found:
    start = _priority(path[0].wanted.qos, dscp)
    wrong = [hop for hop, port in enumerate(path) if _priority(port.state.qos, dscp) != start]
    for hop in _first_node(wrong):
        here = _priority(path[hop].state.qos, dscp)
        told = f"RoCE packets (DSCP {dscp}) of priority {start} become priority {here}"
        yield hop, _hit(path[hop], told, dscp, start)


def _cnp(path: tuple[PortView, ...], dscp: int) -> Found:
    if _priority(path[0].state.qos, dscp) in paused(path[0].state.qos):
        return
    for hop in _first_node([hop for hop, port in enumerate(path) if _enters_lossless(port, dscp)]):
        told = f"CNPs (DSCP {dscp}) enter the lossless priority {_priority(path[hop].state.qos, dscp)}"
        yield hop, _hit(path[hop], told, dscp, None)


def _enters_lossless(port: PortView, dscp: int) -> bool:
    priority = _priority(port.state.qos, dscp)
    return priority in paused(port.state.qos) and priority in paused(port.wanted.qos)


def _first_node(hops: list[int]) -> list[int]:
    """Hops of the first node with one: 1 and 2 are the two sides of the leaf."""
    return [hop for hop in hops if hop == hops[0] or (hops[0], hop) == (1, 2)]


def _priority(qos: QosState, dscp: int) -> int:
    """The priority that a packet with this DSCP gets on arrival; without trust the port's default, 0."""
    if not dscp_trusted(qos):
        return 0
    return known(qos.dscp_to_priority, "DSCP map")[dscp]


def _hit(port: PortView, told: str, dscp: int, priority: int | None) -> Hit:
    setting = "qos.dscp_to_priority" if dscp_trusted(port.state.qos) else "qos.trust"
    group = group_of(setting)
    wanted = f"{dscp}->{priority}" if setting == "qos.dscp_to_priority" and priority is not None else ""
    if group.show(port.wanted) != group.show(port.state):
        wanted = group.show(port.wanted)
    return Hit(
        setting=setting,
        found="none" if port.state.qos.trust == "port" and setting == "qos.trust" else group.show(port.state),
        wanted=wanted or "a lossy priority",
        message=f"{{where}}: {told}",
        reason="packets are classified differently on this port only",
        help=f"correct the {group.title} of this port, so that DSCP {dscp} keeps its class",
        rank=30,
    )


RULE = PathRule("FAB025", "class-changes-on-path", Severity.ERROR, "0.1", "path", _check)
