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
from typing import Final

from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.state import Amount

LARGEST_FRAME: Final = 9216
"""Bytes: the largest frame of any class may just have been started when the pause is decided."""
LOSSLESS_FRAME: Final = 4192
"""Bytes: the largest RDMA frame that the peer may just have started."""
DELAY_S_PER_M: Final = 5e-9
"""Propagation in a cable."""
QUANTA: Final = {10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905, 800: 905}
"""Quanta of 64 bytes in which a sender must react, by port speed in Gbit/s."""


def _check(port: PortView) -> Iterator[Hit]:
    speed = port.hw.speed_gbps
    if port.is_host or not speed:
        return
    for priority, state in enumerate(port.state.qos.classes):
        size = state.headroom
        if isinstance(size, Amount) and size.unit == "bytes":
            yield from _judge(priority, size.value, speed, port.hw.cable_m or 0, port.hw.cable_m is None)


def _judge(priority: int, size: int, speed: int, metres: int, unknown: bool) -> Iterator[Hit]:
    flight = 2 * DELAY_S_PER_M * metres * speed * 1e9 / 8
    least = round(LARGEST_FRAME + LOSSLESS_FRAME + flight)
    usual = round(2 * (LARGEST_FRAME + 20) + 84 + flight + QUANTA.get(speed, 0) * 64)
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
