"""A cable is longer than the switch's lossless headroom reaches.

What it checks
    The length of the cable in every lossless port against the node's option `lossless_max_m` (or
    `lossless_max_m_400g` and so on for one speed): up to where the platform's profile can be lossless.
    Without that option, and where a switch cannot be told the length: against the longest cable that any
    vendor ships a headroom for with this ASIC and speed (warning).

Why it breaks RDMA
    Beyond that length the headroom does not fit. The device only writes a log line and keeps the old or no
    headroom: the port looks lossless and drops under load.
    Source: SONiC mgmt pulls 8041 and 13135.

Wrong
    leaf21,Ethernet1/1,spine02,Ethernet1/1,300       # with lossless_max_m: 200

Right
    leaf21,Ethernet1/1,spine02,Ethernet1/1,150

When to waive it
    For a port whose lossless class is not used over this cable.
"""

from collections.abc import Iterator

from rdma_fabric.checker.headroom import longest_shipped
from rdma_fabric.checker.rules._common import apart, paused
from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.hardware import PortHardware
from rdma_fabric.state import NOT_APPLICABLE, PortState


def _check(node: NodeView) -> Iterator[Hit]:
    yield from apart(_port(node, port) for port in node.state.ports)


def _port(node: NodeView, port: PortState) -> Iterator[Hit]:
    facts = node.hw.port(port.name)
    limit = _limit(node, facts) if facts else 0
    if facts and limit and facts.cable_m is not None and facts.cable_m > limit and _lossless(port):
        yield Hit(
            setting=f"{port.name}|qos.cable_m",
            found=f"{facts.cable_m} m at {facts.speed_gbps}G",
            wanted=f"at most {limit} m",
            message="{where}: the cable is longer than the lossless headroom reaches",
            reason="lossless headroom does not fit; the device would only log this",
            help="use a shorter cable, a lower speed, or a switch with more buffer for this link",
            rank=20,
        )
    elif facts and not limit and not node.is_host and _lossless(port):
        yield from _unheard_of(node, facts, port)


def _unheard_of(node: NodeView, facts: PortHardware, port: PortState) -> Iterator[Hit]:
    """A cable for which nobody ships a headroom, in a switch that computes one without the length."""
    told = port.settings.qos.cable_m is not NOT_APPLICABLE
    longest = longest_shipped(node.hw.asic, facts.speed_gbps) if node.hw.asic else 0
    if told or not longest or facts.cable_m is None or facts.cable_m <= longest:
        return
    yield Hit(
        setting=f"{port.name}|qos.cable_m",
        found=f"{facts.cable_m} m at {facts.speed_gbps}G",
        wanted=f"at most {longest} m, the longest that a headroom is shipped for",
        message="{where}: nothing says that the lossless headroom reaches so far",
        reason="the switch sizes its headroom without the length of the cable",
        help="ask the vendor how far it reaches, and write that as the node's option lossless_max_m",
        severity=Severity.WARNING,
    )


def _lossless(port: PortState) -> bool:
    return bool(paused(port.settings.qos))


def _limit(node: NodeView, port: PortHardware) -> int:
    text = node.hw.option(f"lossless_max_m_{port.speed_gbps}g") or node.hw.option("lossless_max_m")
    return int(text) if text.isdigit() else 0


RULE = NodeRule("FAB043", "cable-beyond-headroom", Severity.ERROR, "0.1", "buffers", _check, plan=True)
