"""What a switch's buffer must hold, and what a pause leaves under way; bytes."""

from __future__ import annotations

from typing import Final

from rdma_fabric.hardware import Asic, PortHardware

LARGEST_FRAME: Final = 9216
"""The largest frame of any class may just have been started when the pause is decided."""
LOSSLESS_FRAME: Final = 4192
"""The largest RDMA frame that the peer may just have started."""
DELAY_S_PER_M: Final = 5e-9
"""Propagation in a cable."""
QUANTA: Final = {10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905, 800: 905}
"""Quanta of 64 bytes in which a sender must react, by port speed in Gbit/s (SONiC's headroom plug-in)."""
SLICES: Final = {
    "Tomahawk": 4,
    "Tomahawk2": 4,
    "Tomahawk3": 2,
    "Tomahawk4": 2,
    "Tomahawk5": 2,
    "Trident4 (BCM56880)": 2,
}
"""Parts of a chip's buffer; a packet sees the part that its ingress pipe gives (Juniper, QFX5000 buffer
architecture; FBOSS)."""


def metres(port: PortHardware) -> int:
    """Length of the cable in a port: as planned, else as assumed for its role."""
    return port.assumed_m if port.cable_m is None else port.cable_m


def cable(port: PortHardware) -> str:
    """The same in words, which say what is assumed."""
    if port.cable_m is not None:
        return f"{port.cable_m} m of cable"
    if port.assumed_m:
        return f"{port.assumed_m} m of cable (assumed: cables.csv has no length)"
    return "a port without a cable"


def under_way(gbps: int, metres: float) -> float:
    """What is on the cable in both directions."""
    return 2 * DELAY_S_PER_M * metres * gbps * 1e9 / 8


def least_headroom(gbps: int, metres: float) -> int:
    """Below this no device can be lossless: two frames that were started, and the cable both ways."""
    return round(LARGEST_FRAME + LOSSLESS_FRAME + under_way(gbps, metres))


def usual_headroom(gbps: int, metres: float) -> int:
    """The same with reaction time and pause frame (IEEE 802.1Qbb annex N, without MAC delays)."""
    return round(2 * (LARGEST_FRAME + 20) + 84 + under_way(gbps, metres) + QUANTA.get(gbps, 0) * 64)


def slice_bytes(asic: Asic) -> int:
    """The buffer that one packet can see; 0 where no source gives a number."""
    return asic.buffer_bytes // SLICES.get(asic.name, 1)
