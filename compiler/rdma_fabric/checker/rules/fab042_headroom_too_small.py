"""A headroom written by hand cannot hold what arrives after a pause.

What it checks
    `headroom` in bytes against the length of the cable and the speed of the port. Error: below two largest
    frames and what is on the cable both ways, which no device can do without. Warning: below the same with
    the sender's reaction time. With `headroom: auto` the device computes it, and this rule is silent.

Why it breaks RDMA
    Between the decision to pause and the last bit that arrives lie one frame each way, the cable twice,
    and the sender's reaction. What does not fit is dropped, in a class that promises not to drop.
    Source: IEEE 802.1Qbb annex N as quoted in "How to Compute Headroom for Lossless Ethernet Links";
    reaction times from SONiC swss cfgmgr/buffer_headroom_mellanox.lua.

Wrong
    pfc: {headroom: 20KB}        # on a 400G port with 300 m of cable

Right
    pfc: {headroom: auto}        # and length_m in cables.csv

When to waive it
    When the vendor's own calculator gave the number for exactly this port, speed and cable.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._buffers import least_headroom, usual_headroom
from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.state import Amount


def _check(port: PortView) -> Iterator[Hit]:
    speed = port.hw.speed_gbps
    if port.is_host or not speed:
        return
    for priority, state in enumerate(port.state.qos.classes):
        size = state.headroom
        if isinstance(size, Amount) and size.unit == "bytes":
            yield from _judge(priority, size.value, speed, port.hw.cable_m or 0, port.hw.cable_m is None)


def _judge(priority: int, size: int, speed: int, metres: int, unknown: bool) -> Iterator[Hit]:
    least, usual = least_headroom(speed, metres), usual_headroom(speed, metres)
    if size >= usual:
        return
    severity, bound = (Severity.ERROR, least) if size < least else (Severity.WARNING, usual)
    cable = "a cable of unknown length" if unknown else f"{metres} m of cable"
    yield Hit(
        setting=f"qos.classes.{priority}.headroom",
        found=f"{size} bytes",
        wanted=f"at least {bound} bytes for {speed}G and {cable}",
        message=f"{{where}}: the headroom of priority {priority} is smaller than what arrives after a pause",
        help="write headroom: auto and give the cable's length, or a larger number",
        severity=severity,
        rank=10,
    )


RULE = PortRule("FAB042", "headroom-too-small", Severity.ERROR, "0.1", "buffers", _check)
