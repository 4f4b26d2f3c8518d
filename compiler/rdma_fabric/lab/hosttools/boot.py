"""What a lab host does between its first process and the login prompt."""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH112, PTH113, PTH208

from __future__ import annotations

import os
import subprocess

from . import mlxconfig, network, services, store, units
from . import modules as kmod
from .driver import DRIVERS, HOST, IEEE, RDMA_DRIVERS, defaults


def main(name: str, arguments: list[str]) -> int:
    """NIC settings as after power-on, modules, sysctl, network, then the enabled units."""
    configfs()
    modules()  # before the ports have a state: a driver that comes later starts them anew
    nics()
    sysctls()
    manager = {"netplan": "systemd-networkd", "networkd": "systemd-networkd", "ifupdown": "networking"}
    running = manager.get(store.facts()["manager"], "NetworkManager")
    with store.opened(store.UNITS) as state:
        for unit in [f"{running}.service", *(units.full(name) for name in store.facts()["services"])]:
            state[unit] = {"active": "active"}
    network.boot()
    for unit in units.wanted():
        services.start(unit)
    return 0


def configfs() -> None:
    """Put the attributes of this host's hardware where the kernel shows them."""
    for name in ("config", "debug"):
        source = f"{store.ATTRIBUTES}/{name}"
        if os.path.isdir(source):
            subprocess.run(["mount", "--bind", source, f"/sys/kernel/{name}"], check=True)


def nics() -> None:
    """Power-on state of each port: factory values and what the flash holds."""
    with store.opened(store.NIC) as states:
        states.clear()
        for port in store.facts()["ports"]:
            if port["nic"] == "mlx5":
                mlxconfig.take_over(port["bdf"])
                states[port["netdev"]] = mlxconfig.in_force(port)
            else:
                states[port["netdev"]] = defaults(port)
            kept = store.read(store.FLASH).get(port["netdev"])
            if kept:
                states[port["netdev"]]["priv_flags"] = kept
                if not kept.get("fw-lldp-agent", False):
                    states[port["netdev"]]["dcbx"] = HOST | IEEE


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
