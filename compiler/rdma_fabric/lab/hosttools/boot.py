"""What a lab host does between its first process and the login prompt."""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH112, PTH113, PTH208

from __future__ import annotations

import os
import subprocess

from . import devices, iplink, network, nvparams, rdma, services, store, sysfs, udev, units, versions
from . import modules as kmod
from .driver import DRIVERS, RDMA_DRIVERS, in_force


def main(name: str, arguments: list[str]) -> int:
    """NIC settings as after power-on, modules, sysctl, network, then the enabled units."""
    if store.facts()["stacked"]:
        iplink.probe()
    configfs()
    nics()
    modules()
    wants = coldplug()
    sysctls()
    with store.opened(store.UNITS) as state:
        state[units.network_manager()] = {"active": "active"}
    network.boot()
    services.at_boot()
    for unit in units.wanted(wants):
        services.start(unit)
    return 0


def coldplug() -> list[str]:
    """Devices that are there, through udev's rules; returns the units that those want."""
    wants: list[str] = []
    for port in store.facts()["ports"]:
        if devices.here(port["netdev"]):
            wants += udev.apply(udev.Device("add", "net", port["netdev"])).wants()
        if rdma.loaded(port):
            devices.rdma_state(port)
            sysfs.add_rdma(port)
            wants += udev.apply(udev.Device("add", "infiniband", port["ibdev"])).wants()
            devices.vendor(port["ibdev"])
    return wants


def configfs() -> None:
    """Put the attributes of this host's hardware where the kernel shows them."""
    for name in ("config", "debug"):
        source = f"{store.ATTRIBUTES}/{name}"
        if os.path.isdir(source):
            subprocess.run(["mount", "--bind", source, f"/sys/kernel/{name}"], check=True)


def nics() -> None:
    """Power-on state of each port: factory values and what the flash holds."""
    for port in store.facts()["ports"]:
        versions.after_reset(port["bdf"])
        if port["nic"] == "mlx5":
            nvparams.take_over(port["bdf"])
    states = {port["netdev"]: in_force(port) for port in store.facts()["ports"]}
    with store.opened(store.NIC) as kept:
        kept.clear()
        kept.update(states)


def modules() -> None:
    """Drivers of the NICs (udev loads them), then /etc/modules-load.d."""
    nic_kinds = {port["nic"] for port in store.facts()["ports"]}
    names = [table[kind] for kind in sorted(nic_kinds) for table in (DRIVERS, RDMA_DRIVERS) if kind in table]
    if store.facts()["ib"]:
        # rdma-core: /etc/rdma/modules/rdma.conf and infiniband.conf
        names += ["mlx5_ib", "ib_umad", "ib_ipoib", "rdma_ucm"]
    folder = "/etc/modules-load.d"
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if file.endswith(".conf"):
            lines = (line.strip() for line in store.slurp(f"{folder}/{file}").splitlines())
            names += [line for line in lines if line and line[0] not in "#;"]
    with store.opened(store.MODULES) as loaded:
        for module in names:
            if problem := kmod.load(module, {}, loaded):
                store.log(f"systemd-modules-load: {problem}")
        kmod.publish(loaded)
    kmod.forget_events()


def sysctls() -> None:
    """/etc/sysctl.d by the real sysctl; what this kernel lacks or forbids is logged."""
    folder = "/etc/sysctl.d"
    files = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = [f"{folder}/{name}" for name in files if name.endswith(".conf")]
    if os.path.isfile("/etc/sysctl.conf"):
        paths.append("/etc/sysctl.conf")
    if not paths:
        return
    done = subprocess.run(["sysctl", "-q", "-p", *paths], capture_output=True, text=True, check=False)
    for line in done.stderr.splitlines():
        store.log(f"systemd-sysctl: {line}")
