"""What a port has that nobody configured, put together from its node's parts (`Traits.defaults`)."""

from __future__ import annotations

from functools import cache

from rdma_fabric.hardware import PortHardware
from rdma_fabric.platforms._node import keys, overlay, platform
from rdma_fabric.state import NodeState, PortSettings, PortState

NOTHING = PortSettings()


def defaults(parts: tuple[str, ...], port: PortHardware) -> PortSettings:
    """The defaults of a physical port; UNMANAGED where no source gives one, and for all other ports."""
    if port.kind != "physical":
        return NOTHING
    nic = f"nic_{port.nic}"
    return _joined(tuple(part for part in parts if not part.startswith("nic_") or part == nic))


@cache
def _joined(parts: tuple[str, ...]) -> PortSettings:
    found = NOTHING
    for part in parts:
        if part in keys():
            found = over(found, platform(part).traits.defaults)
    return found


def over(below: PortSettings, above: PortSettings) -> PortSettings:
    """`above` where it says anything, else `below`."""
    if below is NOTHING or below is above:
        return above
    laid = overlay(*(NodeState(ports=(PortState("port", settings=one),)) for one in (below, above)))
    return laid.ports[0].settings
