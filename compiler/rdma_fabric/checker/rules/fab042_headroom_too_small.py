"""A headroom cannot hold what arrives after a pause.

What it checks
    `headroom` written by hand, and the headroom that an observed device computed, against the length of the
    cable and the speed of the port. Error: below two largest frames and what is on the cable both ways, which
    no device can do without. Warning: below the least that is shipped for this ASIC, speed and length; where
    nothing is shipped, below the least with the sender's reaction time (a note where the ASIC is not known).
    A length that cables.csv does not give is assumed (5 m to a host, 40 m between switches) and said to be.
    `headroom: auto` that was not read is not judged.

Why it breaks RDMA
    Between the decision to pause and the last bit that arrives lie one frame each way, the cable twice,
    and the sender's reaction. What does not fit is dropped, in a class that promises not to drop.
    Source: IEEE 802.1Qbb annex N as quoted in "How to Compute Headroom for Lossless Ethernet Links";
    reaction times from SONiC swss cfgmgr/buffer_headroom_mellanox.lua; shipped values from the
    headroom tables in SONiC's device folders (docs/headroom.md compares them with ours).

Wrong
    pfc: {headroom: 20KB}        # on a 400G port with 300 m of cable

Right
    pfc: {headroom: auto}        # and length_m in cables.csv

When to waive it
    When the vendor's own calculator gave the number for exactly this port, speed and cable.
"""

from collections.abc import Iterator

from rdma_fabric.checker.headroom import verdict
from rdma_fabric.checker.rules._buffers import cable, least_headroom, metres
from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.hardware import PortHardware
from rdma_fabric.state import Amount


def _check(node: NodeView) -> Iterator[Hit]:
    if node.is_host:
        return
    for port in node.state.ports:
        facts = node.hw.port(port.name)
        if facts is None or not facts.speed_gbps:
            continue
        for priority, state in enumerate(port.settings.qos.classes):
            size = state.headroom
            if isinstance(size, Amount) and size.unit == "bytes":
                yield from _judge(node, facts, priority, size.value)
    yield from _computed(node)


def _computed(node: NodeView) -> Iterator[Hit]:
    """What the device computed itself: only what no device can do without is sure to be wrong."""
    for one in node.buffers:
        facts, port = node.hw.port(one.port), node.state.port(one.port)
        if facts is None or port is None or not facts.speed_gbps or not isinstance(one.room, int):
            continue
        by_hand = isinstance(port.settings.qos.classes[one.priority].headroom, Amount)
        if not by_hand and metres(facts) and one.room < least_headroom(facts.speed_gbps, metres(facts)):
            yield from _judge(node, facts, one.priority, one.room)


def _judge(node: NodeView, port: PortHardware, priority: int, size: int) -> Iterator[Hit]:
    found = verdict(size, node.hw.asic, port.speed_gbps, metres(port))
    if found is None:
        return
    severity, bound, whose = found
    yield Hit(
        setting=f"{port.name}|qos.classes.{priority}.headroom",
        found=f"{size} bytes",
        wanted=f"at least {bound} bytes for {port.speed_gbps}G and {cable(port)} ({whose})",
        message=f"{{where}}: the headroom of priority {priority} is smaller than what arrives after a pause",
        help="write headroom: auto and give the cable's length, or a larger number",
        severity=severity,
        rank=10,
    )


RULE = NodeRule("FAB042", "headroom-too-small", Severity.ERROR, "0.1", "buffers", _check, ports=True)
