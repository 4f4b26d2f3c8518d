"""Bonds and VLANs as the network managers' files define them, made by `ip` as those managers do.

Reads what the manager of the host reads (systemd.netdev(5), nm-settings-keyfile(5), interfaces(5) with
ifenslave and vlan); netplan's come as files of networkd or NetworkManager. Members are enslaved after their
own MTU was set, so that a bond's counts.
"""

# pathlib costs start-up time, which each call of a tool pays.
# ruff: noqa: PTH110

from __future__ import annotations

import os
import subprocess

from . import store

Sections = dict[str, list[tuple[str, str]]]
"""Section -> keys with their values, in the order of the file; keys repeat."""


class Plan:
    """What a manager wants: bond -> mode, member -> bond, VLAN -> (parent, id), netdev -> own MTU."""

    def __init__(self) -> None:
        self.bonds: dict[str, str] = {}
        self.members: dict[str, str] = {}
        self.vlans: dict[str, tuple[str, int]] = {}
        self.sizes: dict[str, int] = {}

    def update(self, other: Plan) -> None:
        """Take over what another manager wants besides."""
        self.bonds |= other.bonds
        self.members |= other.members
        self.vlans |= other.vlans


def sections(text: str) -> Sections:
    """An ini-like file; values of one key that are given more than once all count."""
    found: Sections = {}
    section = ""
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif line and line[0] not in "#;" and "=" in line:
            key, _, value = line.partition("=")
            found.setdefault(section, []).append((key.strip(), value.strip()))
    return found


def value(found: Sections, section: str, key: str) -> str:
    """The last value of a key, or nothing."""
    return ([text for name, text in found.get(section, ()) if name == key] or [""])[-1]


def networkd(netdev_texts: list[str], networks: dict[str, Sections]) -> Plan:
    """Of `.netdev` files and of the `.network` file that each netdev has."""
    plan = Plan()
    kinds: dict[str, Sections] = {}
    for text in netdev_texts:
        found = sections(text)
        name = value(found, "NetDev", "Name")
        kinds.setdefault(name, found)
        if value(found, "NetDev", "Kind") == "bond":
            plan.bonds[name] = value(found, "Bond", "Mode") or "balance-rr"
        if value(found, "NetDev", "MTUBytes").isdigit():
            plan.sizes[name] = int(value(found, "NetDev", "MTUBytes"))
    for netdev, found in networks.items():
        for key, above in found.get("Network", ()):
            if key == "Bond" and above in plan.bonds:
                plan.members[netdev] = above
            elif key == "VLAN" and above in kinds and value(kinds[above], "VLAN", "Id").isdigit():
                plan.vlans[above] = (netdev, int(value(kinds[above], "VLAN", "Id")))
    return plan


def keyfiles(profiles: list[Sections]) -> Plan:
    """Of NetworkManager's profiles; a member names its bond by netdev, id or UUID."""
    plan = Plan()
    names: dict[str, str] = {}
    for found in profiles:
        netdev = value(found, "connection", "interface-name")
        for key in ("id", "uuid", "interface-name"):
            names[value(found, "connection", key)] = netdev
        kind = value(found, "connection", "type")
        if kind == "bond" and netdev:
            plan.bonds[netdev] = value(found, "bond", "mode") or "balance-rr"
        if kind == "vlan" and netdev and value(found, "vlan", "id").isdigit():
            plan.vlans[netdev] = (value(found, "vlan", "parent"), int(value(found, "vlan", "id")))
    for found in profiles:
        kind = value(found, "connection", "port-type") or value(found, "connection", "slave-type")
        above = value(found, "connection", "controller") or value(found, "connection", "master")
        if kind == "bond" and names.get(above) in plan.bonds:
            plan.members[value(found, "connection", "interface-name")] = names[above]
    plan.vlans = {name: (names.get(parent, parent), number) for name, (parent, number) in plan.vlans.items()}
    return plan


def ifcfg(scripts: list[dict[str, str]]) -> Plan:
    """Of the ifcfg files that NetworkManager (or the initscripts of old) read."""
    plan = Plan()
    for script in scripts:
        netdev = script.get("DEVICE", "")
        if script.get("BONDING_MASTER") == "yes" or script.get("TYPE") == "Bond":
            given = dict(word.partition("=")[::2] for word in script.get("BONDING_OPTS", "").split())
            plan.bonds[netdev] = _mode(given.get("mode", "balance-rr"))
        if script.get("VLAN") == "yes":
            digits = script.get("VLAN_ID") or netdev.rpartition(".")[2]
            parent = script.get("PHYSDEV") or netdev.rpartition(".")[0]
            if digits.isdigit():
                plan.vlans[netdev] = (parent, int(digits))
    for script in scripts:
        if script.get("MASTER", "") in plan.bonds:
            plan.members[script["DEVICE"]] = script["MASTER"]
    return plan


def interfaces(texts: list[str]) -> Plan:
    """Of ifupdown's stanzas: bond-slaves, bond-mode, vlan-raw-device, and names with a dot."""
    plan = Plan()
    netdev = ""
    for words in (line.split() for text in texts for line in text.splitlines()):
        if words[:1] == ["iface"] and len(words) > 1:
            netdev = words[1]
            parent, dot, number = netdev.rpartition(".")
            if dot and number.isdigit():
                plan.vlans[netdev] = (parent, int(number))
        elif words[:1] in (["bond-slaves"], ["bond-ports"]):
            plan.bonds.setdefault(netdev, "balance-rr")
            plan.members.update({name: netdev for name in words[1:] if name != "none"})
        elif words[:1] == ["bond-mode"] and len(words) > 1:
            mode = words[1]
            plan.bonds[netdev] = _mode(mode)
        elif words[:1] in (["vlan-raw-device"], ["vlan_raw_device"]) and len(words) > 1:
            digits = "".join(char for char in netdev.rpartition(".")[2] if char.isdigit())
            plan.vlans[netdev] = (words[1], int(digits or 0))
    return plan


def _mode(text: str) -> str:
    from .sysfs import BOND_MODES

    return BOND_MODES[int(text)] if text.isdigit() and int(text) < len(BOND_MODES) else text


# --- making them ---


def build_bonds(plan: Plan, only: str = "") -> None:
    """Bonds that are missing, and their members; `only`: nothing but this netdev's part."""
    for name, mode in plan.bonds.items():
        if not _here(name) and not only:
            _ip(f"link add name {name} type bond mode {mode} miimon 100")
    for name, bond in plan.members.items():
        if _here(name) and _here(bond) and store.master(name) != bond and only in {"", name}:
            _ip(f"link set dev {name} down")
            _ip(f"link set dev {name} master {bond}")
    for name in plan.bonds if not only else ():
        _ip(f"link set dev {name} up")


def build_vlans(plan: Plan, only: str = "") -> None:
    """VLANs that are missing; `only`: those on this netdev."""
    for name, (parent, number) in plan.vlans.items():
        if _here(parent) and not _here(name) and only in {"", parent}:
            _ip(f"link add link {parent} name {name} type vlan id {number}")
            _ip(f"link set dev {name} up")


def _here(netdev: str) -> bool:
    return os.path.exists(f"/sys/class/net/{netdev}")


def _ip(words: str) -> None:
    done = subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False)
    if done.returncode:
        store.log(f"{store.facts()['manager']}: ip {words}: {done.stderr.strip()}")
