"""Who keeps a port's MTU across a reboot on a Linux host, and what it will be then.

We never edit a file of a network manager. Where it has a drop-in that can be ours as a whole
(netplan, networkd, NetworkManager) we use that, else a unit of ours; where it is not clear who
owns the port, or a foreign file sets another value, nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

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
    netplan_mtus,
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


OWN: Final = "own mtus"
"""Fact: what our files hold, a `Row` a line."""


@dataclass(frozen=True, slots=True)
class Row:
    """One MTU in a file of ours: the writer, its name for the port (netplan: kind/id), bytes, port below."""

    writer: str
    place: str
    mtu: int
    below: str = ""

    @property
    def name(self) -> str:
        """The port, or netplan's id for it."""
        return self.place.rpartition("/")[2]

    def text(self) -> str:
        """As a line of the fact."""
        return f"{self.writer} {self.place} {self.mtu} {self.below}".rstrip()


def own_rows(parts: Mapping[str, Section], hw: Hardware) -> str:
    """The fact `own mtus`; networkd has a file for every port, which nobody rewrites for another one."""
    ours = {path: file.text or "" for path, file in Host(parts, hw).ours.items() if file.ours}
    found = []
    for line in ours.get(PATHS.mtu, "").splitlines():
        words = line.split()
        if len(words) in (2, 3) and words[1].isdigit():
            found.append(Row("unit", words[0], int(words[1]), "".join(words[2:])))
    pattern = r"^match-device=interface-name:(\S+)\nethernet\.mtu=(\d+)$"
    for name, value in re.findall(pattern, ours.get(PATHS.networkmanager, ""), re.MULTILINE):
        found.append(Row("networkmanager", name, int(value)))
    for place, value in netplan_mtus(ours.get(PATHS.netplan, "")):
        found.append(Row("netplan", place, value))
    return "\n".join(row.text() for row in found)


def rows_of(text: str) -> tuple[Row, ...]:
    """From the fact."""
    lines = (line.split() for line in text.splitlines())
    return tuple(Row(words[0], words[1], int(words[2]), "".join(words[3:])) for words in lines)


def clash(plans: Iterable[tuple[str, int]]) -> set[str]:
    """Places that serve several ports with different wishes: none of them can be written."""
    found: dict[str, int] = {}
    return {place for place, mtu in plans if found.setdefault(place, mtu) != mtu}


__all__ = ["DEFAULT_MTU", "NETPLAN_KINDS", "OWN", "Persistence", "Row", "clash", "drop_in", "own_rows"]
__all__ += ["persistence", "rows_of"]
