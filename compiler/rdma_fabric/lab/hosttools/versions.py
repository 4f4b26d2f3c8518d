"""Versions of NIC firmware and drivers: what runs, what is stored in flash, and what `modinfo` says."""

from __future__ import annotations

from . import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from .store import PortFacts

    class Firmware(TypedDict):
        """`running` differs from `stored` between the burning of an image and the reset."""

        running: str
        stored: str


_FACTORY = {"mlx5": "28.39.1002", "bnxt": "233.2.77.9", "irdma": "4.40"}
_RDMA = {"irdma": "1.71"}
"""NIC kinds whose RDMA device has a firmware version of its own."""
_DRIVERS = {"mlx5": "24.10-0.7.0", "bnxt": "1.10.3-233.2.77.9", "irdma": "1.15.4"}
"""Versions of the vendors' own packages; drivers of the kernel have the kernel's."""
PSID = "MT_0000000838"


def firmware(port: PortFacts) -> Firmware:
    """Firmware of a port's adapter."""
    factory = store.trait(port, "firmware") or _FACTORY.get(port["nic"], "")
    kept = store.read(store.FLASH).get(f"firmware {port['bdf']}", {})
    return {"running": kept.get("running", factory), "stored": kept.get("stored", factory)}


def burn(port: PortFacts, version: str, at_once: bool = False) -> None:
    """Another image is in flash; it runs from the next reset on, or at once."""
    with store.opened(store.FLASH) as flash:
        factory = store.trait(port, "firmware") or _FACTORY.get(port["nic"], "")
        kept = flash.setdefault(f"firmware {port['bdf']}", {"running": factory, "stored": factory})
        kept["stored"] = version
        if at_once:
            kept["running"] = version


def after_reset(bdf: str) -> None:
    """The stored image is the one that runs."""
    with store.opened(store.FLASH) as flash:
        kept = flash.get(f"firmware {bdf}")
        if kept:
            kept["running"] = kept["stored"]


def driver(port: PortFacts) -> str:
    """Version of the netdev's driver as `ethtool -i` prints it."""
    own = store.trait(port, "driver")
    if own:
        return own
    return store.facts()["kernel"] if port["stack"] == "inbox" else _DRIVERS.get(port["nic"], "")


def shown(port: PortFacts) -> str:
    """Firmware version as the netdev's driver words it for `ethtool -i`."""
    version = firmware(port)["running"]
    if port["nic"] == "mlx5":
        return f"{version} ({PSID})"
    if port["nic"] == "bnxt":
        return f"{version}/pkg {version}"
    return f"{version} 0x8001c967 1.3534.0" if port["nic"] == "irdma" else version


def rdma(port: PortFacts) -> str:
    """`fw_ver` of the RDMA device."""
    return _RDMA.get(port["nic"]) or firmware(port)["running"]
