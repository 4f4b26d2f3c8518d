"""Network managers of a lab host: netplan, systemd-networkd, NetworkManager, ifupdown (MTU only).

Which manager runs is a fact of the host; files of the others are not read, as in reality. The
management netdev keeps its address and MTU whatever the files say.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH103, PTH108, PTH112, PTH116, PTH208

from __future__ import annotations

import configparser
import fnmatch
import os
import select
import subprocess
import sys

from . import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SERVICES = {"systemd-networkd.service", "NetworkManager.service", "networking.service"}
NETPLAN = "/etc/netplan"
_NETWORKD = ("/etc/systemd/network", "/run/systemd/network")
_KEYFILES = ("/etc/NetworkManager/system-connections", "/run/NetworkManager/system-connections")
# Keys of an ethernet in netplan 0.106 (netplan-yaml reference).
_KEYS = {
    *("match", "set-name", "wakeonlan", "mtu", "macaddress", "addresses", "dhcp4", "dhcp6", "routes"),
    *("optional", "nameservers", "gateway4", "gateway6", "link-local", "accept-ra", "routing-policy"),
    *("renderer", "critical", "receive-checksum-offload", "transmit-checksum-offload", "ipv6-mtu"),
    *("dhcp4-overrides", "dhcp6-overrides", "dhcp-identifier", "ipv6-privacy", "optional-addresses"),
    *("activation-mode", "virtual-function-count", "embedded-switch-mode", "link", "ignore-carrier"),
    *("emit-lldp", "tcp-segmentation-offload", "generic-segmentation-offload", "neigh-suppress"),
}


class Wrong(Exception):
    """A file that its manager refuses; the text is the manager's."""


def main(name: str, arguments: list[str]) -> int:
    """Run the tool of this name."""
    words = [word for word in arguments if not word.startswith("-")]
    verb = words[0] if words else ""
    if name == "udevadm":
        return _udevadm(verb, arguments)
    if name == "networkctl":
        return _networkctl(verb)
    if name == "nmcli":
        return _nmcli(words)
    try:
        return _netplan(verb, arguments)
    except Wrong as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 1


def _say(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return 0


# --- reading the managers' files ---


def _netdevs() -> dict[str, str]:
    """Netdev -> MAC address of what may be configured here: not loopback, not management."""
    keep = {"lo", store.facts()["management"]}
    names = sorted(os.listdir("/sys/class/net"))
    return {name: store.slurp(f"/sys/class/net/{name}/address").strip() for name in names if name not in keep}


def _files(folders: tuple[str, ...], *endings: str) -> list[str]:
    """Files in name order; of two with one name the first folder's wins."""
    found: dict[str, str] = {}
    for folder in folders:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.endswith(endings):
                found.setdefault(name, f"{folder}/{name}")
    return [found[name] for name in sorted(found)]


def _ini(path: str) -> dict[str, dict[str, str]]:
    """Sections of an ini-like file; later values of one key win."""
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",), allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read(path)
    except configparser.Error as error:
        store.log(f"{path}: {error}")
        return {}
    return {name: {key: value or "" for key, value in parser.items(name)} for name in parser.sections()}


def _networkd(ending: str) -> dict[str, int]:
    """Netdev -> MTU of `.network` or `.link` files: the first file that matches a netdev decides."""
    found: dict[str, int] = {}
    matched: set[str] = set()
    for path in _files(_NETWORKD, ending):
        sections = _ini(path)
        # systemd.network(5): drop-ins of a file, from all folders in the order of their names
        for more in _files(tuple(f"{folder}/{path.rpartition('/')[2]}.d" for folder in _NETWORKD), ".conf"):
            for name, values in _ini(more).items():
                sections.setdefault(name, {}).update(values)
        match = sections.get("Match", {})
        names = (match.get("Name", "") + " " + match.get("OriginalName", "")).split()
        macs = [
            mac.lower()
            for mac in (match.get("MACAddress", "") + " " + match.get("PermanentMACAddress", "")).split()
        ]
        size = sections.get("Link", {}).get("MTUBytes", "")
        for netdev, mac in _netdevs().items():
            named = any(fnmatch.fnmatchcase(netdev, pattern) for pattern in names)
            fits = (named or not names) and (mac in macs or not macs) and bool(names or macs)
            if fits and netdev not in matched:
                matched.add(netdev)
                if size.isdigit():
                    found[netdev] = int(size)
    return found


def _keyfiles() -> dict[str, int]:
    """Netdev -> MTU of NetworkManager's profiles; one that others can read is refused."""
    found: dict[str, int] = {}
    for path in _files(_KEYFILES, ".nmconnection"):
        if os.stat(path).st_mode & 0o077:
            store.log(f'NetworkManager: keyfile: load: "{path}": File permissions (mode) are insecure')
            continue
        sections = _ini(path)
        connection, ethernet = sections.get("connection", {}), sections.get("ethernet", {})
        size = ethernet.get("mtu", "")
        for netdev, mac in _netdevs().items():
            wanted = connection.get("interface-name") or netdev
            if wanted == netdev and ethernet.get("mac-address", mac).lower() == mac and size.isdigit():
                found[netdev] = int(size)
    for path in _files(("/etc/sysconfig/network-scripts",), ""):
        lines = dict(line.partition("=")[::2] for line in store.slurp(path).splitlines() if "=" in line)
        size = lines.get("MTU", "").strip("\"'")
        if path.rpartition("/")[2].startswith("ifcfg-") and size.isdigit():
            found[lines.get("DEVICE", path.rpartition("ifcfg-")[2]).strip("\"'")] = int(size)
    return found


def _interfaces() -> dict[str, int]:
    """Netdev -> MTU of ifupdown's stanzas."""
    found: dict[str, int] = {}
    for path in ["/etc/network/interfaces", *_files(("/etc/network/interfaces.d",), "")]:
        netdev = ""
        for line in store.slurp(path).splitlines():
            words = line.split()
            if words[:1] == ["iface"] and len(words) > 1:
                netdev = words[1]
            elif words[:1] == ["mtu"] and len(words) == 2 and words[1].isdigit() and netdev:
                found[netdev] = int(words[1])
    return found


def _hotplug() -> set[str]:
    """Netdevs that ifupdown brings up when they appear."""
    paths = ["/etc/network/interfaces", *_files(("/etc/network/interfaces.d",), "")]
    lines = (line.split() for path in paths for line in store.slurp(path).splitlines())
    return {name for words in lines if words[:1] == ["allow-hotplug"] for name in words[1:]}


# --- netplan ---


def _definitions() -> tuple[dict[str, dict[str, Any]], str]:
    """Ethernets of all files merged in name order, and the renderer; Wrong as netplan says it."""
    import yaml

    ethernets: dict[str, dict[str, Any]] = {}
    renderer = "networkd"
    for path in _files((NETPLAN,), ".yaml"):
        if os.stat(path).st_mode & 0o077:
            sys.stderr.write(
                f"\n** (generate:{os.getpid()}): WARNING **: Permissions for {path} are too open. "
                "Netplan configuration should NOT be accessible by others.\n"
            )
        try:
            document = yaml.safe_load(store.slurp(path)) or {}
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
            raise Wrong(f"{path}{where}: Invalid YAML: {getattr(error, 'problem', error)}") from error
        network = document.get("network") if isinstance(document, dict) else None
        if not isinstance(network, dict):
            raise Wrong(f"{path}:1:1: Error in network definition: expected mapping (check indentation)")
        if network.get("version", 2) != 2:
            raise Wrong(f"{path}:1:1: Error in network definition: Only version 2 is supported")
        renderer = network.get("renderer", renderer)
        for name, values in (network.get("ethernets") or {}).items():
            _check(path, str(name), values or {})
            ethernets.setdefault(str(name), {}).update(values or {})
    return ethernets, renderer


def _check(path: str, name: str, values: dict[str, Any]) -> None:
    for key, value in values.items():
        if key not in _KEYS:
            raise Wrong(f"{path}: Error in network definition: {name}: unknown key '{key}'")
        if key == "mtu" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise Wrong(f"{path}: Error in network definition: invalid unsigned int value '{value}'")
    if "set-name" in values and "match" not in values:
        raise Wrong(f"{path}: Error in network definition: {name}: 'set-name:' requires 'match:' properties")


def _generate() -> None:
    """Write what netplan writes: networkd's files, or NetworkManager's profiles."""
    ethernets, renderer = _definitions()
    for folder in (_NETWORKD[1], _KEYFILES[1]):
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):
            if "netplan-" in name:
                os.unlink(f"{folder}/{name}")
    for name, values in ethernets.items():
        match = values.get("match") or {}
        chosen = [f"Name={match.get('name') or values.get('set-name') or name}"]
        if "macaddress" in match:
            chosen = [f"PermanentMACAddress={match['macaddress']}"]
        head = "[Match]\n" + "\n".join(chosen) + "\n\n"
        mtu = f"[Link]\nMTUBytes={values['mtu']}\n" if "mtu" in values else ""
        if values.get("renderer", renderer) == "NetworkManager":
            netdev = values.get("set-name") or name
            size = f"[ethernet]\nmtu={values['mtu']}\n" if "mtu" in values else "[ethernet]\n"
            profile = f"[connection]\nid=netplan-{name}\ntype=ethernet\ninterface-name={netdev}\n\n{size}"
            _write(f"{_KEYFILES[1]}/netplan-{name}.nmconnection", profile, 0o600)
        else:
            _write(f"{_NETWORKD[1]}/10-netplan-{name}.network", f"{head}{mtu}", 0o644)
        if mtu:
            _write(f"{_NETWORKD[1]}/10-netplan-{name}.link", f"{head}{mtu}", 0o644)


def _write(path: str, text: str, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    os.write(handle, text.encode())
    os.close(handle)


def _netplan(verb: str, arguments: list[str]) -> int:
    if verb == "generate":
        _generate()
        return 0
    if verb == "apply":
        _generate()
        apply(links=True)
        return 0
    if verb == "get":
        import yaml

        ethernets, renderer = _definitions()
        document = {"network": {"version": 2, "renderer": renderer, "ethernets": ethernets}}
        return _say(yaml.safe_dump(document, sort_keys=False).rstrip())
    if verb == "try":
        return _try(arguments)
    raise Wrong(f"netplan: error: argument {{generate,apply,get,try}}: invalid choice: '{verb}'")


def _try(arguments: list[str]) -> int:
    """Apply, and go back to the former MTUs unless a newline comes in time."""
    timeout = 120.0
    for index, word in enumerate(arguments):
        if word == "--timeout":
            timeout = float(arguments[index + 1])
        elif word.startswith("--timeout="):
            timeout = float(word.partition("=")[2])
    before = {netdev: store.mtu(netdev) for netdev in _netdevs()}
    _generate()
    apply(links=True)
    sys.stdout.write("Do you want to keep these settings?\n\n\nPress ENTER before the timeout to accept\n")
    sys.stdout.flush()
    ready = select.select([sys.stdin], [], [], timeout)[0]
    if ready and sys.stdin.readline():
        return _say("Configuration accepted.")
    _set(before)
    _say("Reverting.")
    return 1


# --- applying ---


def _set(sizes: dict[str, int]) -> None:
    present = _netdevs()
    for netdev, size in sizes.items():
        if netdev in present and store.mtu(netdev) != size:
            subprocess.run(["ip", "link", "set", "dev", netdev, "mtu", str(size)], check=False)


def apply(links: bool) -> None:
    """Bring the live MTUs to what the running manager's files say; `links` as udev does at boot."""
    manager = store.facts()["manager"]
    if manager in {"netplan", "networkd"}:
        if links:
            _set(_networkd(".link"))
        _set(_networkd(".network"))
        if manager == "netplan":
            _set(_keyfiles())
    elif manager == "NetworkManager":
        if links:
            _set(_networkd(".link"))
        _set(_keyfiles())
    elif manager == "ifupdown":
        _set(_interfaces())


def link_files(netdev: str) -> None:
    """udev's part for a netdev that came: `.link` files."""
    _set({name: size for name, size in _networkd(".link").items() if name == netdev})


def appeared(netdev: str) -> None:
    """The manager's part for a netdev that came: up, with its address and the MTU of the manager's files.

    ifupdown brings up what is `allow-hotplug`; `auto` is a matter of the boot.
    """
    manager = store.facts()["manager"]
    port = store.port_facts(netdev)
    subprocess.run(["ip", "link", "set", "dev", netdev, "up"], check=False)
    if port is not None and port["address"]:
        subprocess.run(["ip", "address", "add", port["address"], "dev", netdev], check=False)
    sizes = {"netplan": _networkd, "networkd": _networkd}.get(manager, lambda _: {})(".network")
    if manager in {"netplan", "NetworkManager"}:
        sizes |= _keyfiles()
    if manager == "ifupdown" and netdev in _hotplug():
        sizes = _interfaces()
    _set({name: size for name, size in sizes.items() if name == netdev})


def boot() -> None:
    """What a start of the machine does; netplan files that it refuses configure nothing."""
    try:
        if store.facts()["manager"] == "netplan":
            _generate()
    except Wrong as wrong:
        store.log(f"netplan: {wrong}")
    apply(links=True)


def _networkctl(verb: str) -> int:
    """`reload` takes `.network` files; `.link` files are udev's."""
    if store.facts()["manager"] not in {"netplan", "networkd"}:
        unit = "dbus-org.freedesktop.network1.service"
        sys.stderr.write(f"Failed to reload network settings: Unit {unit} not found.\n")
        return 1
    if verb in {"reload", "reconfigure"}:
        _set(_networkd(".network"))
        return 0
    if verb in {"", "list", "status"}:
        for index, netdev in enumerate(["lo", *_netdevs()], 1):
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
