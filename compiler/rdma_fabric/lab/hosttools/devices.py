"""Netdevs and RDMA devices that go and come: driver reloads, modules, firmware resets.

A netdev that comes is a new one: no address, MTU 1500, sysctls of its own at their defaults. Then, in the
order of a real host: udev's `.link` files and rules, sysctl.d for the interface, the network manager, and
the units that want the device. The RDMA device comes after its netdev's units have been started, which is
what a slow unit sees.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH110

from __future__ import annotations

import contextlib
import os
import subprocess

from . import network, nvparams, rdma, store, sysfs, udev, units, versions
from .driver import DRIVERS, RDMA_DRIVERS, in_force, reload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import PortFacts


def here(netdev: str) -> bool:
    """True while the netdev exists."""
    return os.path.exists(f"/sys/class/net/{netdev}")


def of_driver(module: str) -> list[PortFacts]:
    """Ports that a netdev driver or an RDMA driver serves."""
    return [
        port
        for port in store.facts()["ports"]
        if module in {DRIVERS.get(port["nic"]), RDMA_DRIVERS.get(port["nic"])}
    ]


# --- going ---


def unplug_rdma(port: PortFacts) -> None:
    """Its RDMA driver lets the device go."""
    sysfs.remove_rdma(port)


def unplug(port: PortFacts) -> None:
    """Its driver lets the netdev go: units bound to it are stopped."""
    from . import services

    sysfs.remove_net(port)
    subprocess.run(["ip", "link", "del", port["netdev"]], check=False)
    for unit in units.bound_to(port["netdev"]):
        if services.active(unit) == "active":
            services.stop(unit)


# --- coming ---


def plug(port: PortFacts) -> None:
    """The netdev is there anew, with what its driver does at load."""
    with store.opened(store.NIC) as states:
        reload(port, states[port["netdev"]])
    wire = f"type veth peer name {port['wire']} netns {store.WIRE}"
    subprocess.run(["ip", "link", "add", port["netdev"], "address", port["mac"], *wire.split()], check=True)
    far = ["nsenter", f"--net={store.WIRE}", "ip", "link", "set", port["wire"], "mtu", "65535", "up"]
    subprocess.run(far, check=True)
    sysfs.add_net(port)
    appeared("net", port["netdev"])


def plug_rdma(port: PortFacts) -> None:
    """The RDMA device is there anew: RDMA-CM's defaults start over."""
    rdma_state(port)
    if rdma.loaded(port):
        sysfs.add_rdma(port)
        appeared("infiniband", port["ibdev"])


def rdma_state(port: PortFacts) -> None:
    """What an RDMA driver sets when it makes a device."""
    given = store.read(store.MODULES).get("irdma", {}) if port["nic"] == "irdma" else {}
    with store.port_state(port["netdev"]) as state:
        state["tos"], state["mode"], state["tclass"] = 0, "RoCE v2", -1
        if port["nic"] == "irdma":
            state["cc"] = {"roce_dcqcn_enable": int(given.get("dcqcn_enable", "0") == "1")}


def appeared(subsystem: str, name: str) -> None:
    """What a host does for a device that came."""
    if subsystem == "net":
        network.link_files(name)
    device = udev.apply(udev.Device("add", subsystem, name))
    if subsystem == "net":
        _sysctls(name)
        network.appeared(name)
    else:
        vendor(name)
    if subsystem == "net":
        start([*units.wanted_by(name), *device.wants()])
    else:
        queue(device.wants())


def queue(wanted: list[str]) -> None:
    """Start units for a device apart from us, as udev asks systemd to: one that waits for us is left alone.

    The program of a port makes its RDMA device come anew, and the unit that this starts runs it again.
    """
    for unit in dict.fromkeys(wanted):
        null = subprocess.DEVNULL
        words = ["systemctl", "start", units.full(unit)]
        child = subprocess.Popen(words, stdin=null, stdout=null, stderr=null, start_new_session=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(8)


def start(wanted: list[str]) -> None:
    """Start units for a device, in the background: what they say is in the journal."""
    import io

    from . import services

    with contextlib.redirect_stderr(io.StringIO()):
        for unit in dict.fromkeys(wanted):
            services.start(units.full(unit))


def _sysctls(netdev: str) -> None:
    """The udev rule of systemd: sysctl.d once more, for the keys of this interface."""
    folder = "/etc/sysctl.d"
    found = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():  # noqa: PTH112, PTH208
        for line in store.slurp(f"{folder}/{name}").splitlines() if name.endswith(".conf") else ():
            key, equals, value = line.strip().lstrip("-").partition("=")
            path = key.strip().replace(".", "/") if "/" not in key else key.strip()
            if equals and path.split("/")[1:4:2] and f"/{netdev}/" in path and key[0] not in "#;":
                found[f"/proc/sys/{path}"] = value.strip()
    for path, value in found.items():
        try:
            with open(path, "w") as file:  # noqa: PTH123
                file.write(value)
        except OSError as error:
            store.log(f"systemd-sysctl: Couldn't write '{value}' to '{path}': {error.strerror}")


def vendor(ibdev: str) -> None:
    """Rules that a vendor's package brings."""
    from . import bnxt_script

    for port in store.facts()["ports"]:
        if port["ibdev"] == ibdev and port["nic"] == "bnxt" and port["stack"] != "inbox":
            bnxt_script.on_device(port)


# --- resets ---


def restart(port: PortFacts) -> None:
    """The driver of one function is reloaded (`devlink dev reload`, or unbind and bind)."""
    if rdma.here(port):
        unplug_rdma(port)
    unplug(port)
    plug(port)
    plug_rdma(port)


def reset(ports: list[PortFacts]) -> None:
    """The firmware of an adapter is reset: flash and image are in force, and the drivers start anew."""
    for port in ports:
        if rdma.here(port):
            unplug_rdma(port)
        unplug(port)
    for port in ports[:1]:
        nvparams.take_over(port["bdf"])
        versions.after_reset(port["bdf"])
    for port in ports:
        with store.opened(store.NIC) as states:
            bounces = states[port["netdev"]]["bounces"]
            states[port["netdev"]] = {**in_force(port), "bounces": bounces}
        plug(port)
        plug_rdma(port)
