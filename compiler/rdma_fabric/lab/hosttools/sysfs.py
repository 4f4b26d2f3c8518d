"""What /sys shows of a port: its netdev, its PCI function and its RDMA device, which come and go."""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH102, PTH103, PTH108, PTH123, PTH208, PTH211

from __future__ import annotations

import os
import shutil

from . import rdma, store, versions
from .driver import DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import PortFacts

_NET, _RDMA = "/sys/class/net", "/sys/class/infiniband"
_VENDORS = {"mlx5": "0x15b3", "bnxt": "0x14e4", "irdma": "0x8086"}


def texts(folder: str, values: dict[str, str]) -> None:
    """Write files, name -> line."""
    for name, text in values.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(f"{text}\n")


def plain(netdev: str) -> None:
    """A netdev without hardware of its own: what the kernel shows."""
    link = f"{_NET}/{netdev}"
    if not os.path.lexists(link):
        os.symlink(f"../../devices/virtual/net/{netdev}", link)


def add_net(port: PortFacts) -> None:
    """The port's netdev with its real attributes, and the PCI function it is on."""
    netdev = port["netdev"]
    root, real = f"{_NET}/{netdev}", f"/sys/devices/virtual/net/{netdev}"
    os.mkdir(root)
    texts(root, {"speed": str(port["gbps"] * 1000), "duplex": "full"})
    for name in set(os.listdir(real)) - {"speed", "duplex"}:
        os.symlink(f"../../../devices/virtual/net/{netdev}/{name}", f"{root}/{name}")
    if port["nic"] == "ib":
        texts(root, {"mode": "datagram"})
    if port["nic"] not in DRIVERS:
        return
    if port["nic"] == "mlx5" and port["stack"] != "inbox":
        for name in ("qos", "ecn"):
            os.symlink(f"{store.ATTRIBUTES}/net/{netdev}/{name}", f"{root}/{name}")
    pci = f"/sys/bus/pci/devices/{port['bdf']}"
    driver = f"/sys/bus/pci/drivers/{DRIVERS[port['nic']]}"
    os.makedirs(driver, exist_ok=True)
    os.makedirs(f"{pci}/net/{netdev}", exist_ok=True)
    if not os.path.lexists(f"{pci}/driver"):
        os.symlink(driver, f"{pci}/driver")
    os.symlink(pci, f"{root}/device")
    speed = "32.0 GT/s PCIe" if port["gbps"] >= 400 else "16.0 GT/s PCIe"
    width = {"current_link_width": "16", "max_link_width": "16", "numa_node": "0"}
    texts(
        pci, {**width, "vendor": _VENDORS[port["nic"]], "current_link_speed": speed, "max_link_speed": speed}
    )


def remove_net(port: PortFacts) -> None:
    """The netdev is gone; the PCI function stays, without a driver."""
    shutil.rmtree(f"{_NET}/{port['netdev']}", ignore_errors=True)
    pci = f"/sys/bus/pci/devices/{port['bdf']}"
    shutil.rmtree(f"{pci}/net/{port['netdev']}", ignore_errors=True)
    if os.path.lexists(f"{pci}/driver"):
        os.unlink(f"{pci}/driver")


def add_rdma(port: PortFacts) -> None:
    """The port's RDMA device."""
    pci, folder = f"/sys/bus/pci/devices/{port['bdf']}", f"{_RDMA}/{port['ibdev']}"
    os.makedirs(f"{folder}/ports/1/gid_attrs/ndevs", exist_ok=True)
    os.makedirs(f"{pci}/infiniband/{port['ibdev']}", exist_ok=True)
    if not os.path.lexists(f"{folder}/device"):
        os.symlink(pci, f"{folder}/device")
    digits = rdma.guid(port)
    colons = ":".join(digits[at : at + 4] for at in range(0, 16, 4))
    kind = "4: RNIC" if rdma.iwarp(port) else "1: CA"
    texts(folder, {"fw_ver": versions.rdma(port), "node_type": kind, "node_guid": colons})
    texts(f"{folder}/ports/1", {"link_layer": "Ethernet", "state": "4: ACTIVE", "phys_state": "5: LinkUp"})
    texts(f"{folder}/ports/1/gid_attrs/ndevs", {"0": port["netdev"]})
    if port["nic"] == "mlx5" and port["stack"] != "inbox" and not os.path.lexists(f"{folder}/tc"):
        os.symlink(f"{store.ATTRIBUTES}/infiniband/{port['ibdev']}/tc", f"{folder}/tc")


def remove_rdma(port: PortFacts) -> None:
    """The RDMA device is gone."""
    shutil.rmtree(f"{_RDMA}/{port['ibdev']}", ignore_errors=True)
    shutil.rmtree(f"/sys/bus/pci/devices/{port['bdf']}/infiniband", ignore_errors=True)
