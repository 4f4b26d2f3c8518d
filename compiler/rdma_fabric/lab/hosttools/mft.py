"""NVIDIA's other firmware tools: mst, flint, mlxfwmanager, mlxfwreset, mlxprivhost (also as mst*).

Layouts and refusals after mstflint (`flint`, `mlxfwmanager`, `mstprivhost.py`, `mlxfwreset`).
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH103, PTH108, PTH110, PTH112, PTH123

from __future__ import annotations

import os
import sys

from . import devices, nvparams, store, versions
from .mlxconfig import Ended, device, mst_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import PortFacts

_MST = "/dev/mst"


def main(name: str, arguments: list[str]) -> int:
    """Run the tool of this name."""
    tools = {
        "mst": _mst,
        "flint": _flint,
        "mstflint": _flint,
        "mlxfwmanager": _manager,
        "mstfwmanager": _manager,
        "mlxfwreset": _fwreset,
        "mstfwreset": _fwreset,
        "mlxprivhost": _privhost,
        "mstprivhost": _privhost,
    }
    try:
        return tools[name](list(arguments))
    except Ended as end:
        if end.args[1:]:
            sys.stdout.write(f"-E- {end.args[1]}\n")
        return int(end.args[0])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _option(words: list[str], *flags: str) -> str:
    """Take `-d X` (or `--device=X`) out of the words and return X."""
    for index, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag in flags:
            if not equals:
                value = words[index + 1] if index + 1 < len(words) else ""
            del words[index : index + (1 if equals else 2)]
            return value
    return ""


def _functions() -> list[PortFacts]:
    ports = (p for p in store.facts()["ports"] if p["nic"] == "mlx5" and not p["parent"])
    return sorted(ports, key=lambda port: port["bdf"])


# --- mst ---


def _mst(words: list[str]) -> int:
    verb = words[0] if words else "help"
    if verb == "start":
        os.makedirs(_MST, exist_ok=True)
        for port in _functions():
            with open(mst_path(port), "w"):
                pass
        _say("Starting MST (Mellanox Software Tools) driver set\nLoading MST PCI module - Success")
        _say("Loading MST PCI configuration module - Success\nCreate devices")
        return 0
    if verb == "stop":
        for port in _functions():
            if os.path.exists(mst_path(port)):
                os.unlink(mst_path(port))
        _say("Stopping MST (Mellanox Software Tools) driver set\nUnloading MST PCI module - Success")
        return 0
    if verb == "version":
        _say(f"mst, mft {store.facts()['mft']}, built on Jan 01 2024. Git SHA Hash: N/A")
        return 0
    if verb != "status":
        _say(f"-E- Unknown argument {verb}")
        return 1
    started = os.path.isdir(_MST) and any(os.path.exists(mst_path(port)) for port in _functions())
    configured = "loaded" if started else "is not loaded"
    _say("MST modules:\n------------\n    MST PCI module is not loaded")
    _say(f"    MST PCI configuration module {configured}")
    return _status_table(started) if "-v" in words else _status_list(started)


def _status_list(started: bool) -> int:
    _say("\nMST devices:\n------------")
    if not started:
        _say("\tNo MST devices were found or MST modules are not loaded.\n\tYou may need to run 'mst start'")
    for port in _functions() if started else ():
        _say(f"{mst_path(port):<33}- PCI configuration cycles access.")
        where = f"domain:bus:dev.fn={port['bdf']} addr.reg=88 data.reg=92 cr_bar.gw_offset=-1"
        _say(f"{'':<35}{where}\n{'':<35}Chip revision is: 00")
    return 0


def _status_table(started: bool) -> int:
    _say("PCI devices:\n------------")
    widths = (24, 30, 10, 16, 40, 6)

    def row(*cells: str) -> None:
        _say("".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)))

    row("DEVICE_TYPE", "MST", "PCI", "RDMA", "NET", "NUMA")
    for port in _functions():
        kind = "BlueField3(rev:1)" if store.trait(port, "bluefield") else "ConnectX7(rev:0)"
        path = mst_path(port) if started else "NA"
        short = port["bdf"].removeprefix("0000:")
        row(kind, path, short, port["ibdev"], f"net-{port['netdev']}", "0")
    return 0


# --- firmware ---


def _flint(words: list[str]) -> int:
    port = device(_option(words, "-d", "--device"))
    words = [word for word in words if word not in {"full", "-qq"}]
    if words not in (["q"], ["query"]):
        _say(f"-E- Unknown Command: {' '.join(words)}. For more information please run flint -h|--help.")
        return 1
    found = versions.firmware(port)
    guid = port["mac"].replace(":", "")
    rows = [("Image type:", "FS4"), ("FW Version:", found["stored"])]
    if found["running"] != found["stored"]:
        rows.append(("FW Version(Running):", found["running"]))
    rows += [("FW Release Date:", "26.12.2023"), ("Product Version:", found["stored"])]
    rows += [("Rom Info:", "type=UEFI version=14.32.17 cpu=AMD64,AARCH64")]
    rows += [("Description:", "UID                GuidsNumber")]
    rows += [("Base GUID:", f"{guid[:6]}0300{guid[6:]}        4"), ("Base MAC:", f"{guid}            4")]
    rows += [("Image VSD:", "N/A"), ("Device VSD:", "N/A"), ("PSID:", versions.PSID)]
    rows += [("Security Attributes:", "secure-fw")]
    for label, value in rows:
        _say(f"{label:<23}{value}")
    return 0


def _manager(words: list[str]) -> int:
    chosen = _option(words, "-d", "--dev")
    if set(words) - {"--query", "--online-query-psid"}:
        _say(f"-E- Unknown argument: {words[0]}")
        return 1
    ports = [device(chosen)] if chosen else _functions()
    if not ports:
        _say("-E- No devices found or specified, mst might be stopped, run 'mst start' to load MST modules")
        return 1
    _say("Querying Mellanox devices firmware ...\n")
    for number, port in enumerate(ports, 1):
        kind = "BlueField3" if store.trait(port, "bluefield") else "ConnectX7"
        mac = port["mac"].replace(":", "")
        rows = [("Device Type:", kind), ("Part Number:", "MCX75310AAS-NEA_Ax"), ("Description:", "N/A")]
        rows += [("PSID:", versions.PSID), ("PCI Device Name:", port["bdf"]), ("Base MAC:", mac)]
        _say(f"Device #{number}:\n----------\n")
        _say("".join(f"  {label:<18}{value}\n" for label, value in rows).rstrip("\n"))
        _say("  Versions:         Current        Available     ")
        _say(f"     FW             {versions.firmware(port)['running']:<15}N/A           \n")
        _say("  Status:           No matching image found\n")
    return 0


def _fwreset(words: list[str]) -> int:
    """The netdevs of the adapter go and come back, with the flash's values and image in force."""
    port = device(_option(words, "-d", "--device"))
    level = _option(words, "-l", "--level") or "3"
    agreed = bool({"-y", "--yes"} & set(words))
    words = [word for word in words if word not in {"-y", "--yes"}]
    if words in (["q"], ["query"]):
        _say('Reset-levels:\n0: Driver, PCI link, network link will remain up ("live-Patch")  -Not Supported')
        _say("3: Driver restart and PCI reset                                  -Supported     (default)")
        _say("4: Warm Reboot                                                   -Supported")
        return 0
    if words not in (["r"], ["reset"]) or level not in {"3", "4"}:
        _say("-E- Failed to run mlxfwreset: the command or the reset level is not supported")
        return 1
    if store.trait(port, "bluefield"):
        _say("-E- Synchronization by driver is not supported in the current state of this device.")
        return 1
    _say(f"The reset level for device, {port['bdf']} is:\n\n{level}: Driver restart and PCI reset")
    sys.stdout.write("Continue with reset?[y/N] ")
    if agreed:
        _say("y")
    elif sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        _say("Aborted")
        return 1
    ports = nvparams.ports(port["bdf"])
    steps = ("Sending Reset Command To Fw", "Stopping Driver", "Resetting PCI", "Starting Driver")
    devices.reset(ports)
    for step in steps:
        _say(f"-I- {step:<40}-Done")
    _say("-I- FW was loaded successfully.")
    return 0


# --- mlxprivhost ---


def _privhost(words: list[str]) -> int:
    name = _option(words, "-d", "--device")
    flags = {word for word in words if word.startswith("-")}
    words = [word for word in words if word not in flags]
    port = next((p for p in _functions() if name in {p["bdf"], p["bdf"].removeprefix("0000:")}), None)
    if port is None:
        sys.stderr.write(f"-E- Unknown device '{name}'!\n")
        return 1
    if not store.trait(port, "bluefield"):
        text = f"Device '{name}' is not supported, only BlueField devices are supported!"
        sys.stderr.write(f"-E- {text}\n")
        return 1
    if words in (["r"], ["restrict"], ["p"], ["privilege"]):
        sys.stderr.write("-E- Operation is not permitted (refer to the DPU user manual)\n")
        return 1
    if words not in (["q"], ["query"]) or flags:
        sys.stderr.write("-E- Query command with verbose option is not valid from host\n")
        return 1
    restricted = bool(store.trait(port, "restricted"))
    owner = str(restricted).upper()
    _say(f"Host configurations\n{'-' * 19}")
    _say(f"{'level':<30}: {'RESTRICTED' if restricted else 'PRIVILEGED'}")
    _say(f"\nPort functions status:\n{'-' * 23}")
    for function in ("rshim", "tracer", "port_owner", "counter_rd"):
        _say(f"{'disable_' + function:<30}: {owner}")
    _say("")
    return 0
