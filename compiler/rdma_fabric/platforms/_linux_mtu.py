"""Who keeps a port's MTU across a reboot on a Linux host, and what it will be then.

We never edit a file of a network manager. Where it has a drop-in that can be ours as a whole
(netplan, networkd, NetworkManager) we use that, else a unit of ours; where it is not clear who
owns the port, or a foreign file sets another value, nothing is written.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import yaml

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._host_files import File, Section, files, unit_link
from rdma_fabric.state import UNKNOWN, Maybe

NETPLAN: Final = "/etc/netplan/90-fabric.yaml"
NETWORKMANAGER: Final = "/etc/NetworkManager/conf.d/90-fabric.conf"
UNIT_FILE: Final = "/etc/fabric/mtu.conf"
DROP_IN: Final = "90-fabric.conf"
DEFAULT_MTU: Final = 1500
"""What an Ethernet netdev has when nobody sets its MTU (Linux ether_setup)."""

_NETPLAN_KINDS: Final = {"physical": "ethernets", "vf": "ethernets", "bond": "bonds", "vlan": "vlans"}


@dataclass(frozen=True, slots=True)
class Persistence:
    """How one port's MTU is kept. `writer`: netplan, networkd, networkmanager, unit; "" for nobody.

    `place` is the netplan kind and id ("ethernets/eth0") or the name of the .network file.
    `foreign`: a value that a file which is not ours sets and that wins over ours.
    """

    manager: str
    writer: str = ""
    place: str = ""
    stored: Maybe[int] = UNKNOWN
    foreign: str = ""
    problem: str = ""

    def text(self) -> str:
        """As a fact of an observation."""
        return "|".join((self.manager, self.writer, self.place, self.foreign, self.problem))

    @classmethod
    def of(cls, text: str) -> Persistence:
        """From the fact; `stored` is not part of it."""
        manager, writer, place, foreign, problem = [*text.split("|", 4), "", "", "", ""][:5]
        return cls(manager, writer, place, foreign=foreign, problem=problem)


def persistence(parts: Mapping[str, Section], hw: Hardware) -> dict[str, Persistence]:
    """For every port in a network, from the sections of the ports question."""
    ours = files(parts.get("ours", Section()))
    links = set(parts.get("wants", Section()).lines)
    return {port.name: _one(port, hw, parts, ours, links) for port in hw.ports}


def _one(
    port: PortHardware, hw: Hardware, parts: Mapping[str, Section], ours: Mapping[str, File], links: set[str]
) -> Persistence:
    claims = {
        "netplan": _netplan(port, parts.get("netplan", Section()).text),
        "networkd": _networkd(port, hw, parts.get("networkd", Section()).text),
        "networkmanager": _networkmanager(port, parts, ours),
        "ifupdown": _stanza(port, parts.get("ifupdown", Section()).text),
        "ifcfg": _ifcfg(port, parts.get("ifcfg", Section()).text),
    }
    chosen = hw.option("mtu_manager") or _choose(claims)
    if chosen.startswith("?"):
        return Persistence("?", problem=chosen[1:])
    unit = _unit(port, ours, links)
    if chosen == "none":
        return Persistence("none", "unit", stored=unit)
    claim = claims[chosen] or _unclaimed(chosen, port, ours)
    if claim.writer == "unit" and not claim.foreign:
        return Persistence(chosen, "unit", stored=unit)
    return claim


def _choose(claims: Mapping[str, Persistence | None]) -> str:
    """The one manager that names the port; "none" when none does; "?why" when that is not clear."""
    found = [name for name, claim in claims.items() if claim is not None]
    # netplan writes networkd's files and NetworkManager's profiles; NetworkManager reads ifcfg files.
    for first, second in (
        ("netplan", "networkd"),
        ("netplan", "networkmanager"),
        ("networkmanager", "ifcfg"),
    ):
        if first in found and second in found:
            found.remove(second)
    if len(found) > 1:
        return f"?{' and '.join(found)} both configure it: set mtu_manager"
    return found[0] if found else "none"


def _unclaimed(chosen: str, port: PortHardware, ours: Mapping[str, File]) -> Persistence:
    """A manager that the inventory names, although none of its files names the port."""
    if chosen == "netplan":
        kind = _NETPLAN_KINDS.get(port.kind, "ethernets")
        return Persistence("netplan", "netplan", f"{kind}/{port.name}", DEFAULT_MTU)
    if chosen == "networkmanager":
        return Persistence("networkmanager", "networkmanager", stored=_networkmanager_own(port, ours))
    if chosen == "networkd":
        return Persistence("networkd", problem="no .network file names it: add one, or set mtu_manager: none")
    return Persistence(chosen, "unit", stored=DEFAULT_MTU)


def _unit(port: PortHardware, ours: Mapping[str, File], links: set[str]) -> Maybe[int]:
    file = ours.get(UNIT_FILE)
    if file is None or unit_link("fabric-mtu", port.name) not in links:
        return DEFAULT_MTU
    value = file.pairs(" ").get(port.name, "")
    return int(value) if value.isdigit() else DEFAULT_MTU


# ---------------------------------------------------------------- netplan


@lru_cache(maxsize=512)
def _netplan_files(text: str) -> tuple[tuple[str, Any], ...]:
    """(path, network section) in netplan's order of merging, by file name; None when not understood."""
    found = []
    for path, file in files(Section(text, 0, True)).items():
        try:
            data = yaml.safe_load(file.text or "") if file.text is not None else None
        except yaml.YAMLError:
            data = None
        network = (data.get("network") or {}) if isinstance(data, dict) else ({} if data == "" else None)
        if file.text is not None and not file.text.strip():
            network = {}
        found.append((path, network if isinstance(network, dict) else None))
    return tuple(sorted(found, key=lambda item: item[0].rpartition("/")[2]))


def _netplan(port: PortHardware, text: str) -> Persistence | None:
    merged = _netplan_files(text)
    unread = [path for path, network in merged if network is None]
    if unread:
        return Persistence("netplan", problem=f"{unread[0]} cannot be read or understood")
    claims: dict[str, str] = {}
    values: dict[str, list[tuple[str, int]]] = {}
    for path, network in merged:
        for kind, table in network.items():
            for ident, one in table.items() if isinstance(table, dict) else ():
                one = one if isinstance(one, dict) else {}
                how = _netplan_claim(str(ident), one, port.name)
                if how:
                    claims[f"{kind}/{ident}"] = how
                if isinstance(one.get("mtu"), int):
                    values.setdefault(f"{kind}/{ident}", []).append((path, one["mtu"]))
    return _netplan_result(claims, values)


def _netplan_claim(ident: str, one: Mapping[str, Any], port: str) -> str:
    match = one.get("match")
    pattern = str(match.get("name", "")) if isinstance(match, dict) else ""
    if one.get("set-name") == port or pattern == port or (ident == port and not isinstance(match, dict)):
        return "exact"
    return "pattern" if pattern and fnmatch.fnmatchcase(port, pattern) else ""


def _netplan_result(
    claims: Mapping[str, str], values: Mapping[str, list[tuple[str, int]]]
) -> Persistence | None:
    if not claims:
        return None
    if len(claims) > 1:
        return Persistence("netplan", problem=f"netplan has {' and '.join(sorted(claims))} for it")
    place, how = next(iter(claims.items()))
    if how == "pattern":
        return Persistence("netplan", problem=f"netplan's {place} matches it by a pattern: set its mtu there")
    given = values.get(place, [])
    stored = given[-1][1] if given else DEFAULT_MTU
    later = [f"{path}: {value}" for path, value in given if path.rpartition("/")[2] > "90-fabric.yaml"]
    return Persistence("netplan", "netplan", place, stored, later[-1] if later else "")


# ---------------------------------------------------------------- networkd


def _networkd(port: PortHardware, hw: Hardware, text: str) -> Persistence | None:
    printed = files(Section(text, 0, True))
    by_name: dict[str, File] = {}
    for path, file in printed.items():
        if path.endswith(".network") and "10-netplan-" not in path:
            # /etc comes first in the question and hides a file of the same name elsewhere.
            by_name.setdefault(path.rpartition("/")[2], file)
    for name in sorted(by_name):
        how = _networkd_match(by_name[name].text or "", port.name)
        if how == "other":
            continue
        if how == "unclear":
            return Persistence("networkd", problem=f"{name} may serve it: set mtu_manager")
        return _networkd_result(name, how.split(), by_name[name], printed, hw)
    return None


def _networkd_match(text: str, port: str) -> str:
    """The words of Name= when one fits the port, "other" when none does, "unclear" for other criteria."""
    match = re.search(r"\[Match\]\n((?:(?!\[).*\n?)*)", text)
    rows = (
        dict(row.strip().split("=", 1) for row in match.group(1).splitlines() if "=" in row) if match else {}
    )
    if "Name" in rows:
        fits = any(fnmatch.fnmatchcase(port, word) for word in rows["Name"].split())
        return rows["Name"] if fits else "other"
    return (
        "unclear"
        if rows.keys() & {"MACAddress", "PermanentMACAddress", "Type", "Driver", "Path"}
        else "other"
    )


def _networkd_result(
    name: str, words: list[str], main: File, printed: Mapping[str, File], hw: Hardware
) -> Persistence:
    if any(hw.port(word) is None for word in words):
        return Persistence("networkd", problem=f"{name} serves other ports too: set MTUBytes there")
    folder = f"/etc/systemd/network/{name}.d/"
    drop_ins = sorted(path for path in printed if path.startswith(folder))
    stored, foreign = DEFAULT_MTU, ""
    for path, file in ((main.path, main), *((path, printed[path]) for path in drop_ins)):
        value = re.search(r"^\s*MTUBytes=(\d+)\s*$", file.text or "", re.MULTILINE)
        if value:
            stored = int(value.group(1))
            foreign = f"{path}: {stored}" if path > f"{folder}{DROP_IN}" and path.startswith(folder) else ""
    return Persistence("networkd", "networkd", name, stored, foreign)


def drop_in(name: str) -> str:
    """Path of our drop-in for one .network file."""
    return f"/etc/systemd/network/{name}.d/{DROP_IN}"


# ---------------------------------------------------------------- NetworkManager, ifupdown, ifcfg


def _networkmanager(
    port: PortHardware, parts: Mapping[str, Section], ours: Mapping[str, File]
) -> Persistence | None:
    section = parts.get("networkmanager", Section())
    rows = dict(_two(line) for line in section.lines if section.status in (0, 1))
    if port.name not in rows:
        return None
    profile = rows[port.name]
    if profile.isdigit() and int(profile):
        # An explicit MTU of the profile wins over the default of NetworkManager.conf(5).
        return Persistence(
            "networkmanager", "networkmanager", stored=int(profile), foreign=f"the profile: {profile}"
        )
    return Persistence("networkmanager", "networkmanager", stored=_networkmanager_own(port, ours))


def _networkmanager_own(port: PortHardware, ours: Mapping[str, File]) -> int:
    file = ours.get(NETWORKMANAGER)
    own = re.search(
        rf"^match-device=interface-name:{re.escape(port.name)}\nethernet\.mtu=(\d+)$",
        (file.text or "") if file else "",
        re.MULTILINE,
    )
    return int(own.group(1)) if own else DEFAULT_MTU


def _two(line: str) -> tuple[str, str]:
    first, _, rest = line.partition(" ")
    return first, rest.strip()


def _stanza(port: PortHardware, text: str) -> Persistence | None:
    """/etc/network/interfaces: the `mtu` line below `iface PORT`."""
    claimed, foreign, inside = False, "", False
    for path, file in files(Section(text, 0, True)).items():
        for line in (file.text or "").splitlines():
            words = line.split()
            if words[:1] == ["iface"]:
                inside = words[1:2] == [port.name]
                claimed = claimed or inside
            elif inside and words[:1] == ["mtu"] and len(words) == 2:
                foreign = f"{path}: {words[1]}"
    return _foreign_only("ifupdown", foreign) if claimed else None


def _ifcfg(port: PortHardware, text: str) -> Persistence | None:
    for path, file in files(Section(text, 0, True)).items():
        rows = {key: value.strip("\"'") for key, value in file.pairs().items()}
        if path.endswith(f"/ifcfg-{port.name}") or rows.get("DEVICE") == port.name:
            return _foreign_only("ifcfg", f"{path}: {rows['MTU']}" if rows.get("MTU") else "")
    return None


def _foreign_only(manager: str, foreign: str) -> Persistence:
    """A manager without drop-ins: its own value counts, else our unit keeps the MTU."""
    value = foreign.rpartition(": ")[2]
    stored: Maybe[int] = int(value) if value.isdigit() else (UNKNOWN if foreign else DEFAULT_MTU)
    return Persistence(manager, "unit", stored=stored, foreign=foreign)


# ---------------------------------------------------------------- writing


def clash(plans: Iterable[tuple[str, int]]) -> str:
    """Why two ports that one networkd file serves cannot both have their MTU; "" when they can."""
    found: dict[str, int] = {}
    for place, mtu in plans:
        if found.setdefault(place, mtu) != mtu:
            return f"{place} serves ports that want {found[place]} and {mtu}"
    return ""
