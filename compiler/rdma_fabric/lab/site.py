"""What the site itself has told the manager of a lab host's fabric ports: up, bonds, VLANs, and no MTU."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rdma_fabric.inventory.types import Port

Files = list[tuple[str, str]]
"""(absolute path, content)."""
_MODE = "802.3ad"


@dataclass(frozen=True, slots=True)
class _Netdev:
    """A port with what is on top of it; `below` and `vlan` are parent and id of a VLAN."""

    name: str
    kind: str
    members: tuple[str, ...]
    below: str
    vlan: int
    bond: str
    vlans: tuple[str, ...]


def site_files(manager: str, ports: Mapping[str, Port]) -> Files:
    """Files of a manager (a key of MANAGERS) for all ports of a host."""
    shown = [port for port in ports.values() if port.kind in ("physical", "vf", "bond", "vlan")]
    parents = {
        port.name: port.parent or port.name.rpartition(".")[0] for port in shown if port.kind == "vlan"
    }
    bonds = {member: port.name for port in shown if port.kind == "bond" for member in port.members}
    files: Files = []
    for port in shown:
        below = parents.get(port.name, "")
        if port.kind == "vlan" and below not in ports:
            continue  # the inventory does not say on what it is
        vlans = tuple(vlan for vlan, parent in parents.items() if parent == port.name)
        netdev = _Netdev(
            port.name, port.kind, port.members, below, _number(port), bonds.get(port.name, ""), vlans
        )
        files += MANAGERS[manager](netdev)
    return files


def _number(port: Port) -> int:
    """Id of a VLAN: its key, else the digits that its name ends with."""
    digits = re.search(r"\d+$", port.name)
    return port.vlan or int(digits[0] if digits else 1)


def _netplan(port: _Netdev) -> Files:
    kind, more = "ethernets", ""
    if port.kind == "bond":
        kind = "bonds"
        more = f"      interfaces: [{', '.join(port.members)}]\n      parameters: {{mode: {_MODE}}}\n"
    if port.kind == "vlan":
        kind, more = "vlans", f"      id: {port.vlan}\n      link: {port.below}\n"
    text = f"network:\n  version: 2\n  {kind}:\n    {port.name}:\n{more}      link-local: [ipv6]\n"
    return [(f"/etc/netplan/60-{port.name}.yaml", text)]


def _networkd(port: _Netdev) -> Files:
    base = f"/etc/systemd/network/20-{port.name}"
    above = f"Bond={port.bond}\n" if port.bond else ""
    above += "".join(f"VLAN={vlan}\n" for vlan in port.vlans)
    text = f"[Match]\nName={port.name}\n\n[Network]\nLinkLocalAddressing=ipv6\n{above}"
    files = [(f"{base}.network", text)]
    if port.kind == "bond":
        more = f"Kind=bond\n\n[Bond]\nMode={_MODE}\nMIIMonitorSec=100ms\n"
        files.append((f"{base}.netdev", f"[NetDev]\nName={port.name}\n{more}"))
    if port.kind == "vlan":
        files.append((f"{base}.netdev", f"[NetDev]\nName={port.name}\nKind=vlan\n\n[VLAN]\nId={port.vlan}\n"))
    return files


def _networkmanager(port: _Netdev) -> Files:
    kind = port.kind if port.kind in ("bond", "vlan") else "ethernet"
    text = f"[connection]\nid={port.name}\ntype={kind}\ninterface-name={port.name}\n"
    if port.bond:
        text += f"master={port.bond}\nslave-type=bond\n"
    if kind == "bond":
        text += f"\n[bond]\nmode={_MODE}\nmiimon=100\n"
    if kind == "vlan":
        text += f"\n[vlan]\nid={port.vlan}\nparent={port.below}\n"
    path = f"/etc/NetworkManager/system-connections/{port.name}.nmconnection"
    return [(path, f"{text}\n[ipv4]\nmethod=disabled\n")]


def _ifcfg(port: _Netdev) -> Files:
    lines = [f"DEVICE={port.name}", "ONBOOT=yes", "BOOTPROTO=none"]
    if port.bond:
        lines += [f"MASTER={port.bond}", "SLAVE=yes"]
    if port.kind == "bond":
        lines += ["TYPE=Bond", "BONDING_MASTER=yes", f'BONDING_OPTS="mode={_MODE} miimon=100"']
    if port.kind == "vlan":
        lines += ["TYPE=Vlan", "VLAN=yes", f"PHYSDEV={port.below}", f"VLAN_ID={port.vlan}"]
    return [(f"/etc/sysconfig/network-scripts/ifcfg-{port.name}", "\n".join(lines) + "\n")]


def _ifupdown(port: _Netdev) -> Files:
    more = f"    bond-slaves {' '.join(port.members)}\n    bond-mode {_MODE}\n" if port.kind == "bond" else ""
    if port.kind == "vlan":
        more = f"    vlan-raw-device {port.below}\n"
    return [
        (
            f"/etc/network/interfaces.d/{port.name}",
            f"auto {port.name}\niface {port.name} inet manual\n{more}",
        )
    ]


MANAGERS: Mapping[str, Callable[[_Netdev], Files]] = {
    "netplan": _netplan,
    "networkd": _networkd,
    "networkmanager": _networkmanager,
    "ifcfg": _ifcfg,
    "ifupdown": _ifupdown,
}
"""Value of mtu_manager -> what its files say of a netdev."""
