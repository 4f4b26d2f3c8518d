"""Kernel modules that this machine does not have: modprobe, rmmod, lsmod, modinfo, and `devlink dev`."""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH103, PTH110, PTH112, PTH123, PTH208

from __future__ import annotations

import os
import sys

from . import store
from .driver import DRIVERS, RDMA_DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .store import PortFacts

NEEDS: dict[str, tuple[str, ...]] = {
    "configfs": (),
    "ib_core": (),
    "ib_uverbs": ("ib_core",),
    "ib_cm": ("ib_core",),
    "ib_umad": ("ib_core",),
    "ib_ipoib": ("ib_cm",),
    "ib_iser": ("rdma_cm",),
    "iw_cm": ("ib_core",),
    "rdma_cm": ("iw_cm", "ib_cm", "configfs"),
    "rdma_ucm": ("rdma_cm", "ib_uverbs"),
    "rdma_rxe": ("ib_uverbs", "udp_tunnel"),
    "siw": ("ib_core",),
    "udp_tunnel": (),
    "xprtrdma": ("rdma_cm",),
    "rpcrdma": ("rdma_cm",),
    "svcrdma": ("rdma_cm",),
    "nvme_rdma": ("rdma_cm",),
    "mlxfw": (),
    "mlx5_core": ("mlxfw",),
    "mlx5_ib": ("mlx5_core", "ib_uverbs"),
    "bnxt_en": (),
    "bnxt_re": ("bnxt_en", "ib_uverbs"),
    "ice": (),
    "irdma": ("ice", "ib_uverbs"),
    "8021q": (),
    "bonding": (),
    "nvidia_peermem": (),
    "tcp_bbr": (),
    "dummy": (),
    "vfio_pci": (),
}
"""Modules that exist in this host's tree -> what each needs."""
_PARAMETERS: dict[str, dict[str, str]] = {
    "mlx5_core": {"prof_sel": "2", "debug_mask": "0"},
    "rdma_cm": {},
    "rdma_ucm": {},
    "ib_core": {"recv_queue_size": "512"},
}
_VENDOR_PARAMETERS = {
    "irdma": {
        "roce_ena": "0",
        "roce_port_cfg": "0",
        "limits_sel": "3",
        "dcqcn_enable": "0",
        "dcqcn_cc_cfg_valid": "0",
        "dcqcn_min_dec_factor": "1",
        "dcqcn_min_rate": "0",
        "dcqcn_F": "0",
        "dcqcn_T": "0",
        "dcqcn_B": "0",
        "dcqcn_rai_factor": "0",
        "dcqcn_hai_factor": "0",
        "dcqcn_rreduce_mperiod": "0",
    },
}
"""Parameters that only the vendor's own module has."""


def main(name: str, arguments: list[str]) -> int:
    """Run the tool of this name."""
    tools = {
        "modprobe": _modprobe,
        "rmmod": _rmmod,
        "lsmod": _lsmod,
        "modinfo": _modinfo,
        "devlink": _devlink,
    }
    return tools[name](arguments)


def _fail(text: str, status: int = 1) -> int:
    sys.stderr.write(f"{text}\n")
    return status


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _parameters(name: str) -> dict[str, str]:
    """The module's parameters with their defaults."""
    known = dict(_PARAMETERS.get(name, {}))
    if any(
        port["stack"] != "inbox" and RDMA_DRIVERS.get(port["nic"]) == name for port in store.facts()["ports"]
    ):
        known.update(_VENDOR_PARAMETERS.get(name, {}))
    return known


def _configured() -> tuple[dict[str, dict[str, str]], set[str]]:
    """Options and blacklist of /etc/modprobe.d."""
    options: dict[str, dict[str, str]] = {}
    blacklist: set[str] = set()
    folder = "/etc/modprobe.d"
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if not name.endswith(".conf"):
            continue
        for line in store.slurp(f"{folder}/{name}").splitlines():
            words = line.split("#")[0].split()
            if words[:1] == ["options"] and len(words) > 2:
                pairs = (word.partition("=") for word in words[2:])
                options.setdefault(_plain(words[1]), {}).update({key: value for key, _, value in pairs})
            elif words[:1] == ["blacklist"] and len(words) == 2:
                blacklist.add(_plain(words[1]))
    return options, blacklist


def load(name: str, given: dict[str, str], loaded: dict[str, Any]) -> str:
    """Load a module and what it needs; returns a refusal, or nothing. Unknown parameters are ignored."""
    name = _plain(name)
    if name in loaded:
        return ""
    if name not in NEEDS:
        release = store.facts()["kernel"]
        return f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{release}"
    for needed in NEEDS[name]:
        if problem := load(needed, {}, loaded):
            return problem
    wanted = {**_configured()[0].get(name, {}), **given}
    known = _parameters(name)
    for key in sorted(set(wanted) - set(known)):
        store.log(f"{name}: unknown parameter '{key}' ignored")
    loaded[name] = {key: wanted.get(key, default) for key, default in known.items()}
    _noted(name, came=True)
    return ""


_events: list[tuple[str, bool]] = []
"""Drivers that went (False) or came (True), for `settle` once the table of modules is free again."""


def forget_events() -> None:
    """The machine starts: its devices are there anyway."""
    _events.clear()


def settle() -> None:
    """Let the devices of drivers that went or came go and come."""
    from . import devices

    events = list(_events)
    _events.clear()
    for name, came in events:
        rdma_driver = name in RDMA_DRIVERS.values()
        for port in devices.of_driver(name):
            if came:
                (devices.plug_rdma if rdma_driver else devices.plug)(port)
            else:
                (devices.unplug_rdma if rdma_driver else devices.unplug)(port)


def _noted(name: str, came: bool) -> None:
    if name in DRIVERS.values() or name in RDMA_DRIVERS.values():
        _events.append((name, came))


def _unload(name: str, loaded: dict[str, Any], tool: str) -> str:
    name = _plain(name)
    if name not in loaded:
        where = "is not currently loaded" if tool == "rmmod" else f"{name} is not in kernel."
        return (
            f"rmmod: ERROR: Module {name} {where}" if tool == "rmmod" else f"modprobe: FATAL: Module {where}"
        )
    users = [other for other in loaded if name in NEEDS[other]]
    # A folder that somebody made in configfs and left holds the module.
    held = any(name in state["configured"] for state in store.read(store.NIC).values())
    if users or held:
        if tool == "rmmod":
            return f"rmmod: ERROR: Module {name} is in use by: {' '.join(users)}"
        return f"modprobe: FATAL: Module {name} is in use."
    del loaded[name]
    _noted(name, came=False)
    return ""


def publish(loaded: dict[str, Any]) -> None:
    """Show the loaded modules in /sys/module, and in /proc/modules where the kernel has that file."""
    root = "/sys/module"
    for name in set(os.listdir(root)) - set(loaded):
        import shutil

        shutil.rmtree(f"{root}/{name}")
    for name, parameters in loaded.items():
        os.makedirs(f"{root}/{name}/parameters", exist_ok=True)
        for key, value in parameters.items():
            with open(f"{root}/{name}/parameters/{key}", "w") as file:
                file.write(f"{value}\n")
    rows = "".join(f"{row} - Live 0x0000000000000000\n" for row in _rows(loaded, ","))
    with open(f"{store.RUN}/modules", "w") as file:
        file.write(rows)


def _rows(loaded: dict[str, Any], end: str) -> list[str]:
    rows = []
    for name in reversed(list(loaded)):
        users = [other for other in loaded if name in NEEDS[other]]
        rows.append(f"{name} 65536 {len(users)} {','.join(users) + end if users else '-'}")
    return rows


def _modprobe(arguments: list[str]) -> int:
    flags = [word for word in arguments if word.startswith("-")]
    letters = "".join(word[1:] for word in flags if not word.startswith("--"))
    names = [word for word in arguments if not word.startswith("-")]
    if not names:
        return _fail("modprobe: ERROR: missing parameters. See -h.")
    remove = "r" in letters or "--remove" in flags
    dry, quiet = "n" in letters or "--dry-run" in flags, "q" in letters or "--quiet" in flags
    if not remove and "a" not in letters and "--all" not in flags:
        given = dict(word.partition("=")[::2] for word in names[1:])
        names = names[:1]
    else:
        given = {}
    problem = ""
    with store.opened(store.MODULES) as loaded:
        for name in names:
            problem = _one(name, given, loaded, remove, dry, flags, letters)
            if problem:
                break
        if not dry:
            publish(loaded)
    settle()
    if problem:
        return 1 if quiet else _fail(problem)
    return 0


def _one(
    name: str,
    given: dict[str, str],
    loaded: dict[str, Any],
    remove: bool,
    dry: bool,
    flags: list[str],
    letters: str,
) -> str:
    if dry:
        if _plain(name) not in NEEDS:
            return load(name, given, {})
        if "v" in letters and _plain(name) not in loaded:
            sys.stdout.write(f"insmod /lib/modules/{store.facts()['kernel']}/kernel/{_plain(name)}.ko \n")
        return ""
    if remove:
        problem = _unload(name, loaded, "modprobe")
        if not problem:
            _unused(name, loaded)
        return problem
    if "--first-time" in flags and _plain(name) in loaded:
        return f"modprobe: ERROR: could not insert '{name}': Module already in kernel"
    if ("b" in letters or "--use-blacklist" in flags) and _plain(name) in _configured()[1]:
        return ""
    return load(name, given, loaded)


def _unused(name: str, loaded: dict[str, Any]) -> None:
    """`modprobe -r` also takes away what only this module needed (modprobe(8)): a netdev's driver too."""
    for needed in NEEDS[_plain(name)]:
        if needed in loaded and not _unload(needed, loaded, "modprobe"):
            _unused(needed, loaded)


def _rmmod(arguments: list[str]) -> int:
    problem = ""
    with store.opened(store.MODULES) as loaded:
        for name in (word for word in arguments if not word.startswith("-")):
            problem = problem or _unload(name, loaded, "rmmod")
        publish(loaded)
    settle()
    return _fail(problem) if problem else 0


def _lsmod(arguments: list[str]) -> int:
    sys.stdout.write("Module                  Size  Used by\n")
    for row in _rows(store.read(store.MODULES), ""):
        name, size, count, users = row.split()
        sys.stdout.write(f"{name:<19} {size:>8}  {count}{'' if users == '-' else ' ' + users}\n")
    return 0


def _modinfo(arguments: list[str]) -> int:
    names = [word for word in arguments if not word.startswith("-")]
    for name in names:
        if _plain(name) not in NEEDS:
            return _fail(f"modinfo: ERROR: Module {name} not found.")
        path = f"/lib/modules/{store.facts()['kernel']}/kernel/{_plain(name)}.ko"
        sys.stdout.write(f"filename:       {path}\nlicense:        GPL\nname:           {_plain(name)}\n")
        for key in _parameters(_plain(name)):
            sys.stdout.write(f"parm:           {key}:(uint)\n")
    return 0 if names else _fail("modinfo: ERROR: missing module or filename.")


def _devlink(arguments: list[str]) -> int:
    """`devlink dev show`, `info`, `reload pci/<bdf>` (the driver starts anew), `param show|set`."""
    words = [word for word in arguments if not word.startswith("-")]
    in_json = any("j" in word for word in arguments if word.startswith("-"))
    ports = {f"pci/{port['bdf']}": port for port in store.facts()["ports"] if _bound(port)}
    if words[:1] != ["dev"]:
        return _fail(f'Object "{" ".join(words)}" not found')
    verb = words[1] if len(words) > 1 else "show"
    if verb in {"show", "info"} and not words[2:]:
        if verb == "info":
            return _devlink_info(ports, in_json)
        sys.stdout.write("".join(f"{handle}\n" for handle in ports))
        return 0
    handle = words[3] if verb == "param" and len(words) > 3 else "".join(words[2:3])
    if handle not in ports:
        return _fail("devlink answers: No such device")
    port = ports[handle]
    if verb == "info":
        return _devlink_info({handle: port}, in_json)
    if verb == "param":
        return _devlink_param(port, handle, words[2], words[4:])
    if verb != "reload":
        return _fail(f'Command "{" ".join(words[1:])}" not found')
    from . import devices

    devices.restart(port)
    return 0


def _bound(port: PortFacts) -> bool:
    """True while a driver has the port's PCI function."""
    return port["nic"] in DRIVERS and os.path.exists(f"/sys/bus/pci/devices/{port['bdf']}/driver")


def _devlink_info(ports: dict[str, PortFacts], in_json: bool) -> int:
    """Driver, and firmware versions by what they are: fixed, running, stored."""
    from . import versions

    found: dict[str, Any] = {}
    for handle, port in ports.items():
        firmware = versions.firmware(port)
        names = {"mlx5": ("fw.version", "fw"), "bnxt": ("fw", "fw.mgmt", "fw.roce"), "irdma": ("fw.mgmt",)}
        both = {
            when: dict.fromkeys(names[port["nic"]], version)
            for when, version in (("running", firmware["running"]), ("stored", firmware["stored"]))
        }
        fixed = {"fw.psid": versions.PSID} if port["nic"] == "mlx5" else {"board.id": "BCM957608-P1400G"}
        found[handle] = {"driver": DRIVERS[port["nic"]], "versions": {"fixed": fixed, **both}}
    if in_json:
        import json

        sys.stdout.write(json.dumps({"info": found}, separators=(",", ":")) + "\n")
        return 0
    for handle, one in found.items():
        sys.stdout.write(f"{handle}:\n  driver {one['driver']}\n  versions:\n")
        for when, values in one["versions"].items():
            rows = "".join(f"        {name} {value}\n" for name, value in values.items())
            sys.stdout.write(f"      {when}:\n{rows}")
    return 0


def _devlink_param(port: PortFacts, handle: str, verb: str, words: list[str]) -> int:
    """enable_roce of mlx5 waits for a reload; the E810's protocols change at once, one at a time."""
    from . import devices, rdma

    given = dict(zip(words[::2], words[1::2], strict=False))
    name, value = given.get("name", ""), given.get("value", "")
    mode = "driverinit" if port["nic"] == "mlx5" else "runtime"
    with store.port_state(port["netdev"]) as state:
        flags = state["devlink"] if port["nic"] == "mlx5" or port["stack"] == "inbox" else {}
        if name not in flags:
            return _fail("Error: devlink: Parameter not found.\nkernel answers: Invalid argument")
        if verb == "show":
            waits = state["staged"].get(name)
            shown = str(flags[name] if waits is None else bool(waits)).lower()
            sys.stdout.write(
                f"{handle}:\n  name {name} type generic\n    values:\n      cmode {mode} value {shown}\n"
            )
            return 0
        if value not in {"true", "false"}:
            return _fail("Value should be boolean")
        if given.get("cmode") != mode:
            return _fail("Configuration mode not supported\nkernel answers: Operation not supported")
        if any(on and other != name for other, on in flags.items()):
            on = "RoCEv2" if name == "enable_iwarp" else "iWARP"
            text = f"{on} is currently enabled. This device cannot enable iWARP and RoCEv2 simultaneously"
            return _fail(f"Error: ice: {text}.\nkernel answers: Operation not supported")
        if mode == "driverinit":
            state["staged"][name] = int(value == "true")
            return 0
        changed = flags[name] != (value == "true")
        flags[name] = value == "true"
    if changed and rdma.here(port):
        devices.unplug_rdma(port)
    if changed and rdma.loaded(port):
        devices.plug_rdma(port)
    return 0
