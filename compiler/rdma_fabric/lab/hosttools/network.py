"""Network managers of a lab host: netplan, systemd-networkd, NetworkManager, ifupdown (MTU, bonds, VLANs).

Which manager runs is a fact of the host; files of the others are not read, as in reality. The
management netdev keeps its address and MTU whatever the files say.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH112, PTH116, PTH208

from __future__ import annotations

import fnmatch
import os
import subprocess
import sys

from . import stacked, store

SERVICES = {"systemd-networkd.service", "NetworkManager.service", "networking.service"}
NETWORKD = ("/etc/systemd/network", "/run/systemd/network")
_INTERFACES = ["/etc/network/interfaces"]
_IFCFG = "/etc/sysconfig/network-scripts"
KEYFILES = ("/etc/NetworkManager/system-connections", "/run/NetworkManager/system-connections")


def main(name: str, arguments: list[str]) -> int:
    """Run the tool of this name."""
    words = [word for word in arguments if not word.startswith("-")]
    verb = words[0] if words else ""
    if name == "udevadm":
        return _udevadm(verb, arguments)
    if name == "networkctl":
        return _networkctl(verb)
    return _nmcli(words)


def _say(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return 0


# --- reading the managers' files ---


def netdevs() -> dict[str, str]:
    """Netdev -> permanent MAC address of what may be configured here: not loopback, not management."""
    keep = {"lo", store.facts()["management"]}
    given = {port["netdev"]: port["mac"] for port in store.facts()["ports"]}
    names = sorted(set(os.listdir("/sys/class/net")) - keep)
    return {name: given.get(name) or store.slurp(f"/sys/class/net/{name}/address").strip() for name in names}


def files(folders: tuple[str, ...], *endings: str) -> list[str]:
    """Files in name order; of two with one name the first folder's wins."""
    found: dict[str, str] = {}
    for folder in folders:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.endswith(endings):
                found.setdefault(name, f"{folder}/{name}")
    return [found[name] for name in sorted(found)]


def _with_drop_ins(path: str) -> str:
    """A file of networkd and its drop-ins, from all folders, in the order of their names."""
    name = path.rpartition("/")[2]
    more = files(tuple(f"{folder}/{name}.d" for folder in NETWORKD), ".conf")
    return "\n".join(store.slurp(part) for part in (path, *more))


def _matched(ending: str) -> dict[str, stacked.Sections]:
    """Netdev -> the `.network` or `.link` file that decides: the first that matches, with its drop-ins."""
    found: dict[str, stacked.Sections] = {}
    for path in files(NETWORKD, ending):
        sections = stacked.sections(_with_drop_ins(path))
        match: dict[str, str] = {}
        for key, value in sections.get("Match", ()):
            match[key] = f"{match.get(key, '')} {value}"
        names = (match.get("Name", "") + match.get("OriginalName", "")).split()
        macs = (match.get("MACAddress", "") + match.get("PermanentMACAddress", "")).lower().split()
        for netdev, mac in netdevs().items():
            named = any(fnmatch.fnmatchcase(netdev, pattern) for pattern in names)
            if (named or not names) and (mac in macs or not macs) and (names or macs):
                found.setdefault(netdev, sections)
    return found


def _networkd(ending: str) -> dict[str, int]:
    """Netdev -> MTU of `.network` or `.link` files."""
    sizes = {netdev: stacked.value(found, "Link", "MTUBytes") for netdev, found in _matched(ending).items()}
    return {netdev: int(size) for netdev, size in sizes.items() if size.isdigit()}


def _profiles() -> list[stacked.Sections]:
    """NetworkManager's profiles that it takes; one that others can read is refused."""
    found = []
    for path in files(KEYFILES, ".nmconnection"):
        if os.stat(path).st_mode & 0o077:
            store.log(f'NetworkManager: keyfile: load: "{path}": File permissions (mode) are insecure')
        else:
            found.append(stacked.sections(store.slurp(path)))
    return found


def _keyfiles() -> dict[str, int]:
    """Netdev -> MTU of NetworkManager's profiles, and of the ifcfg files that it reads as well."""
    found: dict[str, int] = {}
    for sections in _profiles():
        size = stacked.value(sections, "ethernet", "mtu")
        for netdev, mac in netdevs().items():
            wanted = stacked.value(sections, "connection", "interface-name") or netdev
            own = stacked.value(sections, "ethernet", "mac-address").lower() or mac
            if wanted == netdev and own == mac and size.isdigit():
                found[netdev] = int(size)
    for script in _scripts():
        if script.get("MTU", "").isdigit():
            found[script["DEVICE"]] = int(script["MTU"])
    return found


def _scripts() -> list[dict[str, str]]:
    """Variables of the ifcfg files."""
    found = []
    for path in files((_IFCFG,), ""):
        name = path.rpartition("/")[2]
        if name.startswith("ifcfg-"):
            pairs = (line.partition("=")[::2] for line in store.slurp(path).splitlines() if "=" in line)
            given = {key.strip(): value.strip().strip("\"'") for key, value in pairs if key[0] != "#"}
            found.append({"DEVICE": name.removeprefix("ifcfg-"), **given})
    return found


def _stanzas() -> list[str]:
    """Texts of ifupdown's files."""
    return [store.slurp(path) for path in _INTERFACES + files((f"{_INTERFACES[0]}.d",), "")]


def _interfaces() -> dict[str, int]:
    """Netdev -> MTU of ifupdown's stanzas."""
    found: dict[str, int] = {}
    netdev = ""
    for words in (line.split() for text in _stanzas() for line in text.splitlines()):
        if words[:1] == ["iface"] and len(words) > 1:
            netdev = words[1]
        elif words[:1] == ["mtu"] and len(words) == 2 and words[1].isdigit() and netdev:
            found[netdev] = int(words[1])
    return found


def _hotplug() -> set[str]:
    """Netdevs that ifupdown brings up when they appear."""
    lines = (line.split() for text in _stanzas() for line in text.splitlines())
    return {name for words in lines if words[:1] == ["allow-hotplug"] for name in words[1:]}


# --- applying ---


def set_mtus(sizes: dict[str, int]) -> None:
    """Give netdevs that are there their MTUs."""
    present = netdevs()
    for netdev, size in sizes.items():
        if netdev in present and store.mtu(netdev) != size:
            subprocess.run(["ip", "link", "set", "dev", netdev, "mtu", str(size)], check=False)


def _wanted() -> tuple[stacked.Plan, dict[str, int]]:
    """Bonds and VLANs, and MTUs, of the files of the manager that runs."""
    manager = store.facts()["manager"]
    if manager == "ifupdown":
        return stacked.interfaces(_stanzas()), _interfaces()
    if manager == "NetworkManager":
        plan, sizes = stacked.keyfiles(_profiles()), _keyfiles()
        plan.update(stacked.ifcfg(_scripts()))
        for name, (parent, _) in plan.vlans.items():  # without an MTU of its own a VLAN has its parent's
            sizes.setdefault(name, sizes.get(parent) or store.mtu(parent))
        return plan, sizes
    texts = [_with_drop_ins(path) for path in files(NETWORKD, ".netdev")]
    plan, sizes = stacked.networkd(texts, _matched(".network")), _networkd(".network")
    for name, size in plan.sizes.items():
        sizes.setdefault(name, size)
    for name, (
        parent,
        _,
    ) in plan.vlans.items():  # networkd-link: "Bumping MTU bytes because of stacked device"
        if parent not in sizes and plan.sizes.get(name, 0) > store.mtu(parent):
            sizes[parent] = plan.sizes[name]
    if manager == "netplan":
        plan.update(stacked.keyfiles(_profiles()))
        sizes |= _keyfiles()
    return plan, sizes


def apply(links: bool) -> None:
    """Bring netdevs and MTUs to what the running manager's files say; `links` as udev does at boot."""
    if links and store.facts()["manager"] != "ifupdown":
        set_mtus(_networkd(".link"))
    plan, sizes = _wanted()
    set_mtus(
        {name: size for name, size in sizes.items() if name not in plan.bonds and name not in plan.vlans}
    )
    if plan.bonds or plan.vlans:
        stacked.build_bonds(plan)
        set_mtus({name: size for name, size in _wanted()[1].items() if name in plan.bonds})
        plan, _ = _wanted()
        stacked.build_vlans(plan)
        set_mtus({name: size for name, size in _wanted()[1].items() if name in plan.vlans})


def link_files(netdev: str) -> None:
    """udev's part for a netdev that came: `.link` files."""
    set_mtus({name: size for name, size in _networkd(".link").items() if name == netdev})


def appeared(netdev: str) -> None:
    """The manager's part for a netdev that came: up, with its address and the MTU of the manager's files.

    ifupdown brings up what is `allow-hotplug`; `auto` is a matter of the boot.
    """
    manager = store.facts()["manager"]
    port = store.port_facts(netdev)
    subprocess.run(["ip", "link", "set", "dev", netdev, "up"], check=False)
    if port is not None and port["address"]:
        subprocess.run(["ip", "address", "add", port["address"], "dev", netdev], check=False)
    if port is not None and port["address6"]:
        own = ["ip", "address", "add", port["address6"], "dev", netdev, "nodad"]
        subprocess.run(own, stderr=subprocess.DEVNULL, check=False)
    if manager == "ifupdown" and netdev not in _hotplug():
        return
    plan, sizes = _wanted()
    set_mtus({name: size for name, size in sizes.items() if name == netdev})
    stacked.build_bonds(plan, only=netdev)
    stacked.build_vlans(plan, only=netdev)
    set_mtus({name: size for name, size in _wanted()[1].items() if plan.vlans.get(name, ("",))[0] == netdev})


def boot() -> None:
    """What a start of the machine does; netplan files that it refuses configure nothing."""
    if store.facts()["manager"] == "netplan":
        from . import netplan

        try:
            netplan.generate()
        except netplan.Wrong as wrong:
            store.log(f"netplan: {wrong}")
    apply(links=True)


def _networkctl(verb: str) -> int:
    """`reload` takes `.network` files; `.link` files are udev's."""
    if store.facts()["manager"] not in {"netplan", "networkd"}:
        unit = "dbus-org.freedesktop.network1.service"
        sys.stderr.write(f"Failed to reload network settings: Unit {unit} not found.\n")
        return 1
    if verb in {"reload", "reconfigure"}:
        set_mtus(_networkd(".network"))
        return 0
    if verb in {"", "list", "status"}:
        for index, netdev in enumerate(["lo", *netdevs()], 1):
            _say(f"{index:>3} {netdev:<16} {'loopback' if netdev == 'lo' else 'ether'} routable configured")
        return 0
    sys.stderr.write(f"Unknown command verb {verb}.\n")
    return 1


def _nmcli(words: list[str]) -> int:
    if store.facts()["manager"] != "NetworkManager":
        sys.stderr.write("Error: NetworkManager is not running.\n")
        return 8
    if words[:1] and "connection".startswith(words[0]) and words[1:2] in (["reload"], ["up"], ["load"]):
        if words[1] == "up":
            apply(links=False)
            path = "/org/freedesktop/NetworkManager/ActiveConnection/1"
            _say(f"Connection successfully activated (D-Bus active path: {path})")
        return 0
    if words[:1] and "general".startswith(words[0]):
        return _say("connected")
    sys.stderr.write("Error: this lab's nmcli plays connection reload, load and up only.\n")
    return 2


def _udevadm(verb: str, arguments: list[str]) -> int:
    """`trigger` plays an event of netdevs and RDMA devices: with `add`, `.link` files, rules and units.

    On `change`, the default, systemd starts what the rules want now and did not want before.
    """
    if verb in {"settle", "control", "info", "test"}:
        return 0
    if verb != "trigger":
        sys.stderr.write(f"udevadm: unrecognized command '{verb}'\n")
        return 1
    action, subsystems = "change", set()
    words = [part for word in arguments[1:] for part in word.split("=", 1)]
    for flag, value in zip(words, [*words[1:], ""], strict=True):
        if flag in {"--action", "-c"}:
            action = value
        elif flag in {"--subsystem-match", "-s"}:
            subsystems.add(value)
    names = {word.rstrip("/").rpartition("/")[2] for word in words if word.startswith("/sys/")}
    _trigger(action, subsystems or {"net", "infiniband"}, names)
    return 0


def _trigger(action: str, subsystems: set[str], names: set[str]) -> None:
    from . import devices, udev

    for subsystem in sorted(subsystems & {"net", "infiniband"}, reverse=True):
        folder = f"/sys/class/{subsystem}"
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name in {"lo", store.facts()["management"]} or (names and name not in names):
                continue
            if action == "add" and subsystem == "net":
                link_files(name)
            devices.start(udev.apply(udev.Device(action, subsystem, name)).wants())
