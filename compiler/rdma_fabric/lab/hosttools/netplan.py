"""`netplan` 0.106: its files checked as it does, and turned into those of networkd or NetworkManager."""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH103, PTH108, PTH116, PTH208

from __future__ import annotations

import os
import select
import sys

from . import network, store
from .sysfs import BOND_MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "/etc/netplan"
_KINDS = ("ethernets", "bonds", "vlans")
# Keys of all devices (netplan-yaml reference), then those of one kind.
_KEYS = {
    *("match", "set-name", "wakeonlan", "mtu", "macaddress", "addresses", "dhcp4", "dhcp6", "routes"),
    *("optional", "nameservers", "gateway4", "gateway6", "link-local", "accept-ra", "routing-policy"),
    *("renderer", "critical", "receive-checksum-offload", "transmit-checksum-offload", "ipv6-mtu"),
    *("dhcp4-overrides", "dhcp6-overrides", "dhcp-identifier", "ipv6-privacy", "optional-addresses"),
    *("activation-mode", "virtual-function-count", "embedded-switch-mode", "link", "ignore-carrier"),
    *("emit-lldp", "tcp-segmentation-offload", "generic-segmentation-offload", "neigh-suppress"),
}
_OWN_KEYS = {"ethernets": set[str](), "bonds": {"interfaces", "parameters"}, "vlans": {"id", "link"}}


class Wrong(Exception):
    """A file that netplan refuses; the text is netplan's."""


class Definitions:
    """All files merged in name order: netdev -> kind, and netdev -> values."""

    def __init__(self) -> None:
        self.renderer = "networkd"
        self.kinds: dict[str, str] = {}
        self.values: dict[str, dict[str, Any]] = {}

    def bond_of(self, name: str) -> str:
        """The bond that has a netdev as a member, or nothing."""
        bonds = (bond for bond, kind in self.kinds.items() if kind == "bonds")
        return next((bond for bond in bonds if name in self.values[bond].get("interfaces", ())), "")

    def vlans_on(self, name: str) -> list[str]:
        """VLANs whose parent is this netdev."""
        vlans = (vlan for vlan, kind in self.kinds.items() if kind == "vlans")
        return [vlan for vlan in vlans if self.values[vlan].get("link") == name]

    def mode(self, bond: str) -> str:
        """Mode of a bond; the kernel's default when the file gives none."""
        parameters: dict[str, Any] = self.values[bond].get("parameters") or {}
        return str(parameters.get("mode", "balance-rr"))


def main(name: str, arguments: list[str]) -> int:
    """Run one command; what is wrong with a file goes to standard error."""
    words = [word for word in arguments if not word.startswith("-")]
    try:
        return _netplan(words[0] if words else "", arguments)
    except Wrong as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 1


def _netplan(verb: str, arguments: list[str]) -> int:
    if verb == "generate":
        generate()
        return 0
    if verb == "apply":
        generate()
        network.apply(links=True)
        return 0
    if verb == "get":
        return _get()
    if verb == "try":
        return _try(arguments)
    raise Wrong(f"netplan: error: argument {{generate,apply,get,try}}: invalid choice: '{verb}'")


def _say(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return 0


def _get() -> int:
    import yaml

    found = _definitions()
    shown: dict[str, Any] = {"version": 2, "renderer": found.renderer}
    for kind in _KINDS:
        if kind == "ethernets" or kind in found.kinds.values():
            shown[kind] = {name: found.values[name] for name, own in found.kinds.items() if own == kind}
    return _say(yaml.safe_dump({"network": shown}, sort_keys=False).rstrip())


def _try(arguments: list[str]) -> int:
    """Apply, and go back to the former MTUs unless a newline comes in time."""
    timeout = 120.0
    for index, word in enumerate(arguments):
        if word == "--timeout":
            timeout = float(arguments[index + 1])
        elif word.startswith("--timeout="):
            timeout = float(word.partition("=")[2])
    before = {netdev: store.mtu(netdev) for netdev in network.netdevs()}
    generate()
    network.apply(links=True)
    sys.stdout.write("Do you want to keep these settings?\n\n\nPress ENTER before the timeout to accept\n")
    sys.stdout.flush()
    ready = select.select([sys.stdin], [], [], timeout)[0]
    if ready and sys.stdin.readline():
        return _say("Configuration accepted.")
    network.set_mtus(before)
    _say("Reverting.")
    return 1


# --- reading ---


def _definitions() -> Definitions:
    found = Definitions()
    for path in network.files((FOLDER,), ".yaml"):
        if os.stat(path).st_mode & 0o077:
            sys.stderr.write(
                f"\n** (generate:{os.getpid()}): WARNING **: Permissions for {path} are too open. "
                "Netplan configuration should NOT be accessible by others.\n"
            )
        document = _document(path)
        found.renderer = document.get("renderer", found.renderer)
        for kind in _KINDS:
            for name, values in (document.get(kind) or {}).items():
                _check(path, kind, str(name), values or {})
                found.kinds[str(name)] = kind
                found.values.setdefault(str(name), {}).update(values or {})
    for name, kind in found.kinds.items():
        _relations(found, name, kind)
    return found


def _document(path: str) -> dict[str, Any]:
    """The `network` mapping of a file."""
    import yaml

    try:
        document = yaml.safe_load(store.slurp(path)) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise Wrong(f"{path}{where}: Invalid YAML: {getattr(error, 'problem', error)}") from error
    network_part = document.get("network") if isinstance(document, dict) else None
    if not isinstance(network_part, dict):
        raise Wrong(f"{path}:1:1: Error in network definition: expected mapping (check indentation)")
    if network_part.get("version", 2) != 2:
        raise Wrong(f"{path}:1:1: Error in network definition: Only version 2 is supported")
    return network_part


def _check(path: str, kind: str, name: str, values: dict[str, Any]) -> None:
    for key, value in values.items():
        if key not in _KEYS | _OWN_KEYS[kind]:
            raise Wrong(f"{path}: Error in network definition: {name}: unknown key '{key}'")
        if key == "mtu" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise Wrong(f"{path}: Error in network definition: invalid unsigned int value '{value}'")
    if "set-name" in values and "match" not in values:
        raise Wrong(f"{path}: Error in network definition: {name}: 'set-name:' requires 'match:' properties")
    parameters = values.get("parameters") or {}
    if kind == "bonds" and str(parameters.get("mode", "balance-rr")) not in BOND_MODES:
        raise Wrong(f"{path}: Error in network definition: unknown bond mode '{parameters['mode']}'")


def _relations(found: Definitions, name: str, kind: str) -> None:
    values = found.values[name]
    if kind == "vlans":
        for key in ("id", "link"):
            if key not in values:
                raise Wrong(f"Error in network definition: {name}: missing '{key}' property")
    below = values.get("interfaces", ()) if kind == "bonds" else [values["link"]] if kind == "vlans" else ()
    for other in below:
        if other not in found.kinds:
            raise Wrong(f"Error in network definition: {name}: interface '{other}' is not defined")


# --- writing ---


def generate() -> None:
    """Write networkd's files, or NetworkManager's profiles."""
    found = _definitions()
    for folder in (network.NETWORKD[1], network.KEYFILES[1]):
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):
            if "netplan-" in name:
                os.unlink(f"{folder}/{name}")
    for name, values in found.values.items():
        if values.get("renderer", found.renderer) == "NetworkManager":
            _profile(found, name)
        else:
            _network(found, name)


def _network(found: Definitions, name: str) -> None:
    """`.network`, for netdevs with an MTU `.link`, for bonds and VLANs `.netdev`."""
    values, kind = found.values[name], found.kinds[name]
    match = values.get("match") or {}
    chosen = f"Name={match.get('name') or values.get('set-name') or name}"
    if "macaddress" in match:
        chosen = f"PermanentMACAddress={match['macaddress']}"
    head = f"[Match]\n{chosen}\n\n"
    mtu = f"MTUBytes={values['mtu']}\n" if "mtu" in values else ""
    link = f"[Link]\n{mtu}\n" if mtu else ""
    above = f"Bond={found.bond_of(name)}\n" if found.bond_of(name) else ""
    above += "".join(f"VLAN={vlan}\n" for vlan in found.vlans_on(name))
    base = f"{network.NETWORKD[1]}/10-netplan-{name}"
    _write(f"{base}.network", f"{head}{link}[Network]\nLinkLocalAddressing=ipv6\n{above}", 0o644)
    if mtu and kind == "ethernets":
        _write(f"{base}.link", f"{head}{link}", 0o644)
    netdev = f"[NetDev]\nName={name}\n{mtu}Kind="
    if kind == "bonds":
        _write(f"{base}.netdev", f"{netdev}bond\n\n[Bond]\nMode={found.mode(name)}\n", 0o644)
    if kind == "vlans":
        _write(f"{base}.netdev", f"{netdev}vlan\n\n[VLAN]\nId={values['id']}\n", 0o644)


def _profile(found: Definitions, name: str) -> None:
    values, kind = found.values[name], found.kinds[name]
    netdev = values.get("set-name") or name
    own = {"ethernets": "ethernet", "bonds": "bond", "vlans": "vlan"}[kind]
    text = f"[connection]\nid=netplan-{name}\ntype={own}\ninterface-name={netdev}\n"
    if bond := found.bond_of(name):
        text += f"slave-type=bond\nmaster={bond}\n"
    if kind == "bonds":
        text += f"\n[bond]\nmode={found.mode(name)}\n"
    if kind == "vlans":
        text += f"\n[vlan]\nid={values['id']}\nparent={values['link']}\n"
    text += "\n[ethernet]\n" + (f"mtu={values['mtu']}\n" if "mtu" in values else "")
    _write(f"{network.KEYFILES[1]}/netplan-{name}.nmconnection", text, 0o600)
    if "mtu" in values and kind == "ethernets":
        head = f"[Match]\nName={netdev}\n\n[Link]\nMTUBytes={values['mtu']}\n"
        _write(f"{network.NETWORKD[1]}/10-netplan-{name}.link", head, 0o644)


def _write(path: str, text: str, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    os.write(handle, text.encode())
    os.close(handle)
