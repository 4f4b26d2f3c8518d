"""What befalls a lab host when the lab is told so: hands, packages, resets (`lab.breaks.Mishap`).

Called as `fabric-break KIND WORD...`; says what it did, or why it cannot (status 1).
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH108, PTH113, PTH123

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys

from . import devices, lldpad, network, nvparams, rdma, services, store, versions
from . import modules as kmod
from .driver import DSCP, bounce, nic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .store import PortFacts

_FOREIGN = "/etc/sysctl.d/99-zz-performance.conf"


class Cannot(Exception):
    """Why it cannot happen to this host."""


def main(name: str, arguments: list[str]) -> int:
    """Let it happen."""
    kind, *words = arguments
    try:
        sys.stdout.write(f"{_KINDS[kind](words)}\n")
    except Cannot as why:
        sys.stdout.write(f"{why}\n")
        return 1
    except OSError as error:
        sys.stdout.write(f"the host refuses: {error.strerror}\n")
        return 1
    return 0


def _port(netdev: str) -> PortFacts:
    port = store.port_facts(netdev)
    if port is None or not devices.here(netdev):
        known = ", ".join(port["netdev"] for port in store.facts()["ports"] if devices.here(port["netdev"]))
        raise Cannot(f"there is no fabric port {netdev}: use one of {known or '(none)'}")
    return port


def _mtu(words: list[str]) -> str:
    """Of a port, or of a bond or VLAN on top of ports."""
    netdev, size = words[0], (words[1:] or ["4096"])[0]
    port = store.port_facts(netdev) if netdev in network.netdevs() else _port(netdev)
    before = store.mtu(netdev)
    command = ["ip", "link", "set", "dev", netdev, "mtu", size]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Cannot(f"the host refuses: {done.stderr.strip()}")
    active = f", active_mtu {rdma.active_mtu(port)[0]}" if port and rdma.here(port) else ""
    return f"MTU of {netdev} is {store.mtu(netdev)}, was {before}{active}"


def _pfc(words: list[str]) -> str:
    port = _port(words[0])
    with store.port_state(port["netdev"]) as state:
        was = [str(priority) for priority, on in enumerate(state["pfc"]) if on]
        if not was:
            raise Cannot(f"PFC of {port['netdev']} is off already")
        nic(port, state).set_pfc([False] * 8, state["cable"])
    return f"PFC of {port['netdev']} is off live, was on for priority {', '.join(was)}"


def _trust(words: list[str]) -> str:
    port = _port(words[0])
    with store.port_state(port["netdev"]) as state:
        entries = [entry for entry in state["apps"] if entry[0] == DSCP]
        if state["trust"] != "dscp" and not entries:
            raise Cannot(f"{port['netdev']} does not trust DSCP")
        driver = nic(port, state)
        for selector, priority, point in entries:
            driver.del_app(selector, priority, point)
        if state["trust"] == "dscp":  # set through the vendor's sysfs, without entries
            state["trust"] = "pcp"
    return f"{port['netdev']} trusts PCP, not DSCP"


def _ecn(words: list[str]) -> str:
    port = _port(words[0])
    keys = {"bnxt": "ecn_enable", "irdma": "roce_dcqcn_enable"}
    with store.port_state(port["netdev"]) as state:
        if port["nic"] == "mlx5" and port["stack"] == "inbox":
            raise Cannot(f"the kernel's driver has no switch for it: use 'nv {words[0]} ROCE_CC_PRIO_MASK=0'")
        if port["nic"] == "mlx5":
            if not any(state["np"] + state["rp"]):
                raise Cannot(f"ECN of {port['netdev']} is off already")
            state["np"], state["rp"] = [False] * 8, [False] * 8
        elif port["nic"] in keys:
            if not state["cc"].get(keys[port["nic"]]):
                raise Cannot(f"congestion control of {port['netdev']} is off already")
            state["cc"][keys[port["nic"]]] = state["staged"][keys[port["nic"]]] = 0
        else:
            raise Cannot(f"{port['netdev']} has no congestion control")
    return f"congestion control of {port['netdev']} is off live"


def _flap(words: list[str]) -> str:
    port = _port(words[0])
    with store.port_state(port["netdev"]) as state:
        bounce(port, state)
        return f"the link of {port['netdev']} went down and up ({state['bounces']} times since the boot)"


def _reload(words: list[str]) -> str:
    port = _port(words[0])
    devices.restart(port)
    return f"the driver of {port['netdev']} was loaded anew: MTU {store.mtu(port['netdev'])}"


def _module(words: list[str]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = kmod.main("modprobe", ["-r", words[0]])
    if status:
        raise Cannot(f"the host refuses: {said.getvalue().strip()}")
    return f"module {words[0]} is unloaded"


def _lldpad(words: list[str]) -> str:
    ports = [_port(word) for word in words] or store.facts()["ports"]
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = services.start("lldpad.service")
    if status:
        raise Cannot(f"the host refuses: {said.getvalue().strip()}")
    for port in ports:
        lldpad.turn_on(port["netdev"])
    return f"lldpad runs and speaks on {', '.join(port['netdev'] for port in ports)}"


def _nv(words: list[str]) -> str:
    port = _port(words[0])
    name, _, text = words[1].partition("=")
    if port["nic"] != "mlx5":
        raise Cannot(f"{port['netdev']} has no NV parameters that the lab knows (nic mlx5 has)")
    known = nvparams.parameters(port["bdf"])
    if name not in known:  # parameters of a port may be named without its number
        number = [other["netdev"] for other in nvparams.ports(port["bdf"])].index(port["netdev"]) + 1
        name = f"{name}_P{number}"
    if name not in known:
        raise Cannot(f"the adapter of {port['netdev']} has no parameter {words[1].partition('=')[0]}")
    try:
        value = known[name].parse(text)
        known[name].check(value)
    except nvparams.Wrong as wrong:
        raise Cannot(str(wrong)) from wrong
    nvparams.write(port["bdf"], {name: value})
    now = nvparams.flash(port["bdf"])["current"][name]
    return f"{name} is {known[name].shown(value)} at the next boot, {known[name].shown(now)} now"


def _firmware(words: list[str]) -> str:
    port, version = _port(words[0]), words[1]
    before = versions.firmware(port)["running"]
    if not before:
        raise Cannot(f"{port['netdev']} has no firmware")
    for other in store.facts()["ports"]:
        if nvparams.adapter(other["bdf"]) == nvparams.adapter(port["bdf"]):
            versions.burn(other, version, at_once=True)
    return f"firmware of {port['netdev']} is {version}, was {before}"


def _sysctl(words: list[str]) -> str:
    key, _, value = words[0].partition("=")
    path = "/proc/sys/" + (key if "/" in key else key.replace(".", "/"))
    if not os.path.isfile(path):
        raise Cannot(f"this host has no sysctl {key}")
    with open(_FOREIGN, "a") as file:
        file.write(f"{key} = {value}\n")
    with open(path, "w") as file:
        file.write(value)
    return f"{_FOREIGN} sets {key} = {value}, and so it is now"


def _forget(words: list[str]) -> str:
    if not os.path.isfile(words[0]):
        raise Cannot(f"there is no file {words[0]}")
    os.unlink(words[0])
    return f"{words[0]} is gone"


_KINDS: dict[str, Callable[[list[str]], str]] = {
    "mtu": _mtu,
    "pfc": _pfc,
    "trust": _trust,
    "ecn": _ecn,
    "flap": _flap,
    "reload": _reload,
    "module": _module,
    "lldpad": _lldpad,
    "nv": _nv,
    "firmware": _firmware,
    "sysctl": _sysctl,
    "forget": _forget,
}
