"""Who keeps a port's MTU across a reboot on a Linux host, and what it will be then.

We never edit a file of a network manager. Where it has a drop-in that can be ours as a whole
(netplan, networkd, NetworkManager) we use that, else a unit of ours; where it is not clear who
owns the port, or a foreign file sets another value, nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._host_files import Section, unit_link
from rdma_fabric.platforms._linux_managers import (
    DEFAULT_MTU,
    NETPLAN_KINDS,
    Host,
    Persistence,
    as_unit,
    claims,
    drop_in,
    from_link_file,
    networkmanager_own,
)
from rdma_fabric.platforms._linux_names import PATHS
from rdma_fabric.state import Maybe

_READS: tuple[tuple[str, str], ...] = (
    ("netplan", "networkd"),
    ("netplan", "networkmanager"),
    ("networkmanager", "ifcfg"),
    ("networkmanager", "ifupdown"),
)
"""Netplan writes networkd's files and NetworkManager's profiles; NetworkManager reads the others' files."""


_NEEDED = (
    *("ours", "wants", "active", "netplan", "networkd", "drop-ins", "networkmanager", "ifupdown", "ifcfg"),
)
"""Sections without which nobody knows who keeps an MTU."""


def persistence(parts: Mapping[str, Section], hw: Hardware) -> dict[str, Persistence]:
    """For every port in a network, from the sections of the ports question; members follow their bond."""
    host = Host(parts, hw)
    found = {port.name: _one(port, host) for port in hw.ports}
    for bond in hw.ports:
        for name in bond.members if bond.kind == "bond" else ():
            if name in found:
                found[name] = Persistence("bond", "bond", bond.name, found[bond.name].stored)
    return found


def _one(port: PortHardware, host: Host) -> Persistence:
    if missing := [name for name in _NEEDED if not host.section(name).asked]:
        return Persistence("?", problem=f"the answer about {', '.join(missing[:3])} was not understood")
    found = claims(port, host)
    named = host.hw.option("mtu_manager")
    chosen = named or _choose(found)
    if chosen.startswith("?"):
        return Persistence("?", problem=chosen[1:])
    others = [claim for name, claim in found.items() if name != chosen and claim.foreign]
    if named and others and (named, others[0].manager) not in _READS:
        return Persistence(named, problem=f"{others[0].manager} sets its MTU too: {others[0].foreign}")
    if chosen == "none":
        return Persistence("none", "unit", stored=_unit(port, host))
    claim = found.get(chosen) or _unclaimed(chosen, port, host)
    if claim.writer == "unit" and not claim.foreign:
        return as_unit(claim, _unit(port, host))
    return claim


def _choose(found: Mapping[str, Persistence]) -> str:
    """The one manager that names the port; "none" when none does; "?why" when that is not clear."""
    names = [name for name, claim in found.items() if claim.manager != "none"]
    for first, second in _READS:
        if first in names and second in names:
            names.remove(second)
    if len(names) > 1:
        return f"?{' and '.join(names)} both configure it: set mtu_manager"
    return names[0] if names else "none"


def _unclaimed(chosen: str, port: PortHardware, host: Host) -> Persistence:
    """A manager that the inventory names, although none of its files names the port."""
    if chosen == "netplan":
        kind = NETPLAN_KINDS.get(port.kind, "ethernets")
        return Persistence("netplan", "netplan", f"{kind}/{port.name}", DEFAULT_MTU)
    if chosen == "networkmanager":
        return networkmanager_own(port, host)
    if chosen == "networkd":
        return Persistence("networkd", problem="no .network file names it: add one, or set mtu_manager: none")
    return Persistence(chosen, "unit", stored=DEFAULT_MTU)


def _unit(port: PortHardware, host: Host) -> Maybe[int]:
    file = host.ours.get(PATHS.mtu)
    if file is None or unit_link("fabric-mtu", port.name) not in set(host.section("wants").lines):
        return from_link_file(port, host)
    rows = (line.split() for line in (file.text or "").splitlines())
    found = {row[0]: row[1] for row in rows if len(row) >= 2 and row[1].isdigit()}
    return int(found[port.name]) if port.name in found else from_link_file(port, host)


def clash(plans: Iterable[tuple[str, int]]) -> set[str]:
    """Places that serve several ports with different wishes: none of them can be written."""
    found: dict[str, int] = {}
    return {place for place, mtu in plans if found.setdefault(place, mtu) != mtu}


__all__ = ["DEFAULT_MTU", "NETPLAN_KINDS", "Persistence", "clash", "drop_in", "persistence"]
