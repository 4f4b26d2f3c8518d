"""What /sys shows of a port: its netdev, its PCI function and its RDMA device, which come and go."""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH102, PTH103, PTH108, PTH112, PTH114, PTH115, PTH123, PTH208, PTH211

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager

from . import counting, health, rdma, store, versions
from .driver import DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .store import PortFacts

_NET, _RDMA = "/sys/class/net", "/sys/class/infiniband"
BOND_MODES = (
    *("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"),
)
"""Modes of a bond in the order of their numbers."""
_VENDORS = {"mlx5": "0x15b3", "bnxt": "0x14e4", "irdma": "0x8086"}


def texts(folder: str, values: dict[str, str]) -> None:
    """Write files, name -> line."""
    for name, text in values.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(f"{text}\n")


@contextmanager
def _alone() -> Iterator[None]:
    """One at a time: tools that move devices, and process 1, which follows the kernel."""
    handle = os.open(f"{store.RUN}/sysfs.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def plain(netdev: str) -> None:
    """A netdev without hardware of its own: what the kernel shows."""
    link = f"{_NET}/{netdev}"
    if not os.path.lexists(link):
        os.symlink(f"../../devices/virtual/net/{netdev}", link)


def add_net(port: PortFacts) -> None:
    """The port's netdev with its real attributes, and the PCI function it is on."""
    with _alone():
        _add_net(port)


def _add_net(port: PortFacts) -> None:
    netdev = port["netdev"]
    root, real = f"{_NET}/{netdev}", f"/sys/devices/virtual/net/{netdev}"
    shutil.rmtree(root, ignore_errors=True)  # a bond that is still told it has this member shows it meanwhile
    os.mkdir(root)
    texts(root, {"speed": str(health.here().gbps(netdev, port["gbps"]) * 1000), "duplex": "full"})
    for name in set(os.listdir(real)) - {"speed", "duplex"}:
        os.symlink(f"../../../devices/virtual/net/{netdev}/{name}", f"{root}/{name}")
    if port["nic"] == "ib":
        texts(root, {"mode": "datagram"})
    if port["nic"] not in DRIVERS:
        return
    if port["nic"] == "mlx5" and port["stack"] != "inbox" and not port["parent"]:
        for name in ("qos", "ecn"):
            os.symlink(f"{store.ATTRIBUTES}/net/{netdev}/{name}", f"{root}/{name}")
    pci = f"/sys/bus/pci/devices/{port['bdf']}"
    driver = f"/sys/bus/pci/drivers/{DRIVERS[port['nic']]}"
    os.makedirs(driver, exist_ok=True)
    os.makedirs(f"{pci}/net/{netdev}", exist_ok=True)
    if not os.path.lexists(f"{pci}/driver"):
        os.symlink(driver, f"{pci}/driver")
    os.symlink(pci, f"{root}/device")
    _functions(port, pci)
    speed = "32.0 GT/s PCIe" if port["gbps"] >= 400 else "16.0 GT/s PCIe"
    width = {"current_link_width": "16", "max_link_width": "16", "numa_node": "0"}
    texts(
        pci, {**width, "vendor": _VENDORS[port["nic"]], "current_link_speed": speed, "max_link_speed": speed}
    )


def _functions(port: PortFacts, pci: str) -> None:
    """Which function is whose: `physfn` of a virtual one, `virtfn<n>` and the numbers of its physical one."""
    ports = store.facts()["ports"]
    parent = next((other for other in ports if other["netdev"] == port["parent"]), None)
    if parent is not None and not os.path.lexists(f"{pci}/physfn"):
        os.symlink(f"/sys/bus/pci/devices/{parent['bdf']}", f"{pci}/physfn")
    virtual = [other for other in ports if other["parent"] == port["netdev"]]
    for number, other in enumerate(virtual):
        if not os.path.lexists(f"{pci}/virtfn{number}"):
            os.symlink(f"/sys/bus/pci/devices/{other['bdf']}", f"{pci}/virtfn{number}")
    if not port["parent"]:
        texts(pci, {"sriov_numvfs": str(len(virtual)), "sriov_totalvfs": str(max(8, len(virtual)))})


def remove_net(port: PortFacts) -> None:
    """The netdev is gone; the PCI function stays, without a driver."""
    with _alone():
        shutil.rmtree(f"{_NET}/{port['netdev']}", ignore_errors=True)
    pci = f"/sys/bus/pci/devices/{port['bdf']}"
    shutil.rmtree(f"{pci}/net/{port['netdev']}", ignore_errors=True)
    if os.path.lexists(f"{pci}/driver"):
        os.unlink(f"{pci}/driver")


def topology() -> list[tuple[str, str]]:
    """Netdevs with what they are part of: what `sync` shows, and cheap to compare."""
    return [(name, store.master(name)) for name in sorted(os.listdir("/sys/devices/virtual/net"))]


def sync() -> None:
    """Show netdevs that came, forget those that went, and who is on top of whom."""
    with _alone():
        _sync()


def _sync() -> None:
    facts, real = store.facts(), set(os.listdir("/sys/devices/virtual/net"))
    with store.opened(store.LINKS) as links:
        made = links.setdefault("made", {})
        for name in [name for name in made if name not in real]:
            del made[name]
        for bond in (link for link in made.values() if link["kind"] == "bond"):
            bond["members"] = {name: kept for name, kept in bond["members"].items() if name in real}
    ports = {port["netdev"] for port in facts["ports"]}
    for name in set(os.listdir(_NET)) - real - ports:  # ports go by `remove_net`
        if os.path.islink(f"{_NET}/{name}"):
            os.unlink(f"{_NET}/{name}")
        else:
            shutil.rmtree(f"{_NET}/{name}")
    for name in real - ports:
        if made.get(name, {}).get("kind") != "bond":
            plain(name)
            continue
        if os.path.islink(f"{_NET}/{name}"):  # shown before it was known to be a bond
            os.unlink(f"{_NET}/{name}")
        os.makedirs(f"{_NET}/{name}/bonding", exist_ok=True)
    played = set(made).union(*(link.get("members", ()) for link in made.values()))
    for name in real & set(os.listdir(_NET)):
        if not os.path.islink(f"{_NET}/{name}"):
            _refresh(name, {"brport", "bridge", "brif", "brforward"} if name in played else set())
    for name, link in made.items():
        if link["kind"] == "bond":
            _bond(name, link)


def _refresh(netdev: str, hidden: set[str]) -> None:
    """A folder of ours has the kernel's attributes as links; those to other netdevs stay relative."""
    root, real = f"{_NET}/{netdev}", f"/sys/devices/virtual/net/{netdev}"
    wanted = {}
    for name in set(os.listdir(real)) - {"speed", "duplex"} - hidden:
        near = name == "master" or name.startswith(("upper_", "lower_"))
        whole = f"../../../devices/virtual/net/{netdev}/{name}"
        wanted[name] = os.readlink(f"{real}/{name}") if near else whole
    for name in os.listdir(root):
        path = f"{root}/{name}"
        ours = name not in {"device", "qos", "ecn", "speed", "duplex"}
        if ours and os.path.islink(path) and os.readlink(path) != wanted.get(name):
            os.unlink(path)
    for name, target in wanted.items():
        if not os.path.lexists(f"{root}/{name}"):
            os.symlink(target, f"{root}/{name}")
    shutil.rmtree(f"{root}/bonding_slave", ignore_errors=True)


def _bond(netdev: str, link: dict[str, Any]) -> None:
    """`bonding/` of a stand-in bond, and `bonding_slave/` of its members."""
    names = list(link["members"])
    state = {"mode": f"{link['mode']} {BOND_MODES.index(link['mode'])}", "slaves": " ".join(names)}
    state |= {"miimon": link["miimon"], "mii_status": "up" if names else "down"}
    texts(f"{_NET}/{netdev}/bonding", {**state, "xmit_hash_policy": "layer2 0", "lacp_rate": "slow 0"})
    for name in names:
        folder = f"{_NET}/{name}/bonding_slave"
        os.makedirs(folder, exist_ok=True)
        texts(folder, {"state": "active", "mii_status": "up", "perm_hwaddr": link["members"][name]["mac"]})


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
    texts(f"{folder}/ports/1", {"rate": rdma.rate(port)})
    counting.show(port, folder)
    if port["nic"] == "mlx5" and port["stack"] != "inbox" and not os.path.lexists(f"{folder}/tc"):
        os.symlink(f"{store.ATTRIBUTES}/infiniband/{port['ibdev']}/tc", f"{folder}/tc")


def speeds() -> None:
    """Bring the files that hold a speed up to date: links came up with another one."""
    found = health.here()
    for port in store.facts()["ports"]:
        if os.path.isdir(f"{_NET}/{port['netdev']}"):
            texts(f"{_NET}/{port['netdev']}", {"speed": str(found.gbps(port["netdev"], port["gbps"]) * 1000)})
        if rdma.here(port):
            texts(f"{_RDMA}/{port['ibdev']}/ports/1", {"rate": rdma.rate(port)})


def remove_rdma(port: PortFacts) -> None:
    """The RDMA device is gone."""
    shutil.rmtree(f"{_RDMA}/{port['ibdev']}", ignore_errors=True)
    shutil.rmtree(f"/sys/bus/pci/devices/{port['bdf']}/infiniband", ignore_errors=True)
