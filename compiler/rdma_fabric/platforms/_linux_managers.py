"""Which network manager configures a port of a Linux host, and the MTU that its files set.

Every reader gives a claim when its manager names the port, else None. Sources: netplan-yaml reference
(files by name, /run before /etc before /lib), systemd.network(5), NetworkManager.conf(5) (later files
first) and nmcli(1), interfaces(5), Red Hat's sysconfig.txt (ifcfg), wicked's ifcfg(5).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import yaml

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms._host_files import File, Section, files
from rdma_fabric.platforms._linux_boot import Lines, Setting, joined, later, lines
from rdma_fabric.platforms._linux_links import address
from rdma_fabric.platforms._linux_names import DROP_IN, PATHS
from rdma_fabric.state import UNKNOWN, Maybe

DEFAULT_MTU: Final = 1500
"""What an Ethernet netdev has when nobody sets its MTU (Linux ether_setup)."""
NETPLAN_KINDS: Final = {"physical": "ethernets", "vf": "ethernets", "bond": "bonds", "vlan": "vlans"}


@dataclass(frozen=True, slots=True)
class Persistence:
    """How one port's MTU is kept. `writer`: netplan, networkd, networkmanager, unit; "" for nobody.

    `place` is the netplan kind and id ("ethernets/eth0") or the name of the .network file.
    `foreign`: "PATH:LINE: value" of a file that is not ours and wins over ours.
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

    @property
    def why_not(self) -> str:
        """Why nothing of ours can keep the MTU; "" when something can."""
        if self.problem:
            return f"who keeps its MTU is unclear: {self.problem}"
        if self.foreign:
            return f"second owner: {self.foreign}"
        return "" if self.writer else "nothing on the host keeps its MTU"


@dataclass(frozen=True, slots=True)
class Host:
    """The answer about ports, as the readers need it."""

    parts: Mapping[str, Section]
    hw: Hardware

    def section(self, name: str) -> Section:
        """A part of the answer; empty when it is not there."""
        return self.parts.get(name, Section())

    def lines(self, *names: str) -> Lines:
        """Parts that show numbered lines of files."""
        return joined(*(lines(self.section(name)) for name in names))

    @property
    def ours(self) -> Mapping[str, File]:
        """Our own files, whole."""
        return files(self.section("ours"))

    def state(self, unit: str) -> str:
        """ "active enabled": what systemctl says of a unit; "" when it says nothing."""
        rows = (line.split(maxsplit=1) for line in self.section("active").lines)
        return next((row[1] for row in rows if len(row) == 2 and row[0] == unit), "")

    def off(self, unit: str) -> bool:
        """True when the unit neither runs nor starts at boot."""
        active, _, enabled = self.state(unit).partition(" ")
        return active in ("inactive", "unknown") and enabled in ("disabled", "masked", "not-found", "")

    def served(self, patterns: tuple[str, ...], port: str) -> set[str]:
        """Netdevs of the host that one of the patterns fits; what is written out counts in any case."""
        names = set(self.section("names").text.split()) | {port}
        found = {name for name in names if any(fnmatch.fnmatchcase(name, word) for word in patterns)}
        return found | {word for word in patterns if not re.search(r"[*?\[]", word)}

    def others(self, patterns: tuple[str, ...], port: str) -> list[str]:
        """Those of them that are not ports of ours, sorted."""
        ours = {one.name for one in self.hw.ports}
        listed = self.section("names").ok
        globs = [] if listed else [word for word in patterns if re.search(r"[*?\[]", word)]
        return sorted(self.served(patterns, port) - ours) or globs


# ---------------------------------------------------------------- netplan


_NETPLAN_RANK: Final = {"run": 0, "etc": 1}


@lru_cache(maxsize=512)
def _netplan_files(text: str) -> tuple[tuple[str, Any], ...]:
    """(path, network section) in netplan's order of merging; None when not understood."""
    printed = files(Section(text, 0, True))
    by_name: dict[str, str] = {}
    for path in sorted(printed, key=lambda one: _NETPLAN_RANK.get(one.split("/")[1], 2)):
        by_name.setdefault(path.rpartition("/")[2], path)
    return tuple((by_name[name], _network(printed[by_name[name]])) for name in sorted(by_name))


def _network(file: File) -> Any:
    """The map `network` of one file; None when it cannot be read or understood."""
    if file.text is None:
        return None
    try:
        data = yaml.safe_load(file.text)
    except yaml.YAMLError:
        return None
    if data is None:
        return {}
    network = data.get("network") if isinstance(data, dict) else None
    return (
        {} if isinstance(data, dict) and network is None else network if isinstance(network, dict) else None
    )


def netplan(port: PortHardware, host: Host) -> Persistence | None:
    """The definition that serves the port, and the last file that gives it an MTU."""
    used = _network_file(port, host)
    if used not in ("", "n/a") and "/10-netplan-" not in used:
        return None
    merged = _netplan_files(host.section("netplan").text)
    unread = [path for path, network in merged if network is None]
    if unread:
        return Persistence("netplan", problem=f"{unread[0]} cannot be read or understood")
    mac = address(host.section(f"link {port.name}"))
    claims: dict[str, str] = {}
    values: dict[str, list[tuple[str, int]]] = {}
    for path, network in merged:
        for kind, table in network.items():
            for ident, one in table.items() if isinstance(table, dict) else ():
                one = one if isinstance(one, dict) else {}
                how = _netplan_claim(str(ident), one, port.name, mac, host)
                if how:
                    claims[f"{kind}/{ident}"] = how
                if (value := _netplan_mtu(one)) is not None:
                    values.setdefault(f"{kind}/{ident}", []).append((path, value))
    return _netplan_result(claims, values)


def _netplan_mtu(one: Mapping[str, Any]) -> int | None:
    """The MTU of a definition; netplan takes the number in quotes as well."""
    text = str(one.get("mtu", ""))
    return int(text) if re.fullmatch(r"\d+", text) else None


def netplan_mtus(text: str) -> Iterator[tuple[str, int]]:
    """(kind/id, bytes) of every definition of one file that has an MTU."""
    for kind, table in (_network(File("", text)) or {}).items():
        for ident, one in table.items() if isinstance(table, dict) else ():
            value = _netplan_mtu(one) if isinstance(one, dict) else None
            if value is not None:
                yield f"{kind}/{ident}", value


def _netplan_claim(ident: str, one: Mapping[str, Any], port: str, mac: str, host: Host) -> str:
    """ "yes" when the definition serves the port, else why that is not clear, or ""."""
    match = one.get("match")
    if not isinstance(match, dict):
        return "yes" if ident == port else ""
    pattern, wanted = str(match.get("name", "")), str(match.get("macaddress", "")).lower()
    if one.get("set-name") == port or (wanted and wanted == mac):
        return "yes"
    if wanted and mac:
        return ""
    if wanted:
        return "matches it by a MAC address, which the port does not show"
    if pattern and not fnmatch.fnmatchcase(port, pattern):
        return ""
    if "driver" in match:
        return "matches it by its driver"
    others = host.others((pattern,), port) if pattern else []
    return f"matches {', '.join(others[:3])} as well" if others else "yes" if pattern else ""


def _netplan_result(
    claims: Mapping[str, str], values: Mapping[str, list[tuple[str, int]]]
) -> Persistence | None:
    if not claims:
        return None
    if len(claims) > 1:
        return Persistence("netplan", problem=f"netplan has {' and '.join(sorted(claims))} for it")
    place, how = next(iter(claims.items()))
    if how != "yes":
        return Persistence("netplan", problem=f"netplan's {place} {how}: set its mtu there")
    given = values.get(place, [])
    stored = given[-1][1] if given else DEFAULT_MTU
    beyond = [f"{path}: {value}" for path, value in given if later(path, PATHS.netplan)]
    return Persistence("netplan", "netplan", place, stored, beyond[-1] if beyond else "")


# ---------------------------------------------------------------- networkd


_ELSEWHERE: Final = ("WLANInterfaceType", "SSID", "BSSID")
"""Conditions that no wired port meets."""


def networkd(port: PortHardware, host: Host) -> Persistence | None:
    """The .network file that serves the port, and the last of its lines that sets an MTU."""
    if host.off("systemd-networkd"):
        return None
    found = host.lines("networkd", "drop-ins")
    if found.unread:
        return Persistence("networkd", problem=f"{found.unread[0]} cannot be read")
    used = _network_file(port, host)
    if used == "n/a":
        return None
    mains = dict.fromkeys(path for path, _, _ in found.rows if path.endswith(".network"))
    for path in mains:
        name = path.rpartition("/")[2]
        if name.startswith("10-netplan-") or (used and path != used):
            continue
        fits = "yes" if used else _matches(port, host, _ini(found, path))
        if fits == "no":
            continue
        if fits == "unclear":
            return Persistence("networkd", problem=f"{name} may serve it: set mtu_manager")
        return _networkd_file(port, host, path, found)
    if used and "/10-netplan-" not in used:
        return Persistence("networkd", problem=f"{used} serves it and was not read")
    return None


def _network_file(port: PortHardware, host: Host) -> str:
    """The file by which networkd configures the port, by networkctl; n/a for none, "" when it is silent."""
    shown = re.search(r"Network File: *(\S+)", host.section(f"network {port.name}").text)
    return shown[1] if shown else ""


def _ini(found: Lines, path: str) -> Iterator[tuple[str, str, Setting]]:
    """(section, key, value and place) of one file."""
    section = ""
    for at, number, text in found.rows:
        if at != path:
            continue
        key, sign, value = text.partition("=")
        if text.startswith("["):
            section = text.strip("[]")
        elif sign:
            yield section, key.strip(), Setting(value.strip(), path, number)


def _matches(port: PortHardware, host: Host, rows: Iterator[tuple[str, str, Setting]]) -> str:
    """yes, no or unclear: every condition of [Match] must hold; without any the file serves everybody."""
    mac = address(host.section(f"link {port.name}"))
    verdicts = []
    for section, key, one in rows:
        if section != "Match":
            continue
        words = tuple(one.value.split())
        if key == "Name":
            verdicts.append(_fits(port.name, words))
        elif key in ("MACAddress", "PermanentMACAddress"):
            known = "yes" if mac in (word.lower() for word in words) else "no"
            verdicts.append(known if mac else "unclear")
        elif key in _ELSEWHERE:
            verdicts.append("no")
        elif key == "Type" and port.kind in ("physical", "vf"):
            verdicts.append(_fits("ether", words))
        else:
            verdicts.append("unclear")
    return "no" if "no" in verdicts else "unclear" if "unclear" in verdicts else "yes"


def _fits(name: str, words: tuple[str, ...]) -> str:
    """systemd.network(5): a leading ! inverts the list."""
    inverted = bool(words) and words[0].startswith("!")
    plain = [word.removeprefix("!") if not at else word for at, word in enumerate(words)]
    return "yes" if any(fnmatch.fnmatchcase(name, word) for word in plain) != inverted else "no"


def _networkd_file(port: PortHardware, host: Host, path: str, found: Lines) -> Persistence | None:
    name = path.rpartition("/")[2]
    rows = list(_ini(found, path))
    if any(key == "Unmanaged" and one.value in ("yes", "true", "1", "on") for _, key, one in rows):
        return None
    conditions = [(key, one.value.split()) for section, key, one in rows if section == "Match"]
    names = tuple(word for key, words in conditions if key == "Name" for word in words)
    others = host.others(names, port.name) if names and not names[0].startswith("!") else ["other ports"]
    if any(key in ("MACAddress", "PermanentMACAddress") and len(words) == 1 for key, words in conditions):
        others = []
    if others:
        text = f"{name} serves {', '.join(others[:3])} as well: set MTUBytes there"
        return Persistence("networkd", problem=text)
    values = _mtu_bytes(rows)
    for drop_in in dict.fromkeys(row[0] for row in found.rows if f"/{name}.d/" in row[0]):
        values += _mtu_bytes(list(_ini(found, drop_in)))
    if not values:
        return Persistence("networkd", "networkd", name, DEFAULT_MTU)
    last = values[-1]
    beyond = f"/{name}.d/" in last.path and later(last.path, DROP_IN)
    stored = _bytes(last.value)
    foreign = f"{last.place}: {last.value}" if beyond or stored is UNKNOWN else ""
    return Persistence("networkd", "networkd", name, stored, foreign)


def _mtu_bytes(rows: list[tuple[str, str, Setting]]) -> list[Setting]:
    return [one for section, key, one in rows if (section, key) == ("Link", "MTUBytes")]


def _bytes(text: str) -> Maybe[int]:
    """systemd's sizes: K, M and G to the base of 1024."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * 1024 ** " KMG".index(match[2] or " ") if match else UNKNOWN


def drop_in(name: str) -> str:
    """Path of our drop-in for one .network file."""
    return f"/etc/systemd/network/{name}.d/{DROP_IN}"


def from_link_file(port: PortHardware, host: Host) -> int:
    """The MTU that udev gives the netdev by a .link file (systemd.link(5)), else that of every netdev."""
    mac = address(host.section(f"link {port.name}"))
    found = host.lines("links")
    for path in dict.fromkeys(row[0] for row in found.rows):
        rows = list(_ini(found, path))
        match = {key: one.value.split() for section, key, one in rows if section == "Match"}
        named = match.get("OriginalName") == [port.name]
        macs = [word.lower() for key in ("MACAddress", "PermanentMACAddress") for word in match.get(key, [])]
        if named or (mac and mac in macs):
            values = _mtu_bytes(rows)
            stored = _bytes(values[-1].value) if values else DEFAULT_MTU
            return stored if isinstance(stored, int) else DEFAULT_MTU
    return DEFAULT_MTU


# ---------------------------------------------------------------- NetworkManager


_CONNECTED: Final = "100"
_UNMANAGED: Final = "10"


def networkmanager(port: PortHardware, host: Host) -> Persistence | None:
    """By nmcli: the active profile of the port, and its MTU. Rows: PORT STATE MTU."""
    section = host.section("networkmanager")
    if host.off("NetworkManager") or section.status == 3:
        return None
    rows = {words[0]: words[1:] for line in section.lines if len(words := line.split()) >= 2}
    if port.name not in rows:
        if not host.state("NetworkManager").startswith("active"):
            return None
        return Persistence("networkmanager", problem="NetworkManager runs and nmcli did not tell about it")
    state, mtu = rows[port.name][0], " ".join(rows[port.name][1:])
    if state in (_UNMANAGED, "external"):
        return None
    if state != _CONNECTED:
        return Persistence("networkmanager", problem="NetworkManager has no active profile for it")
    if mtu.isdigit() and int(mtu):
        # An explicit MTU of the profile wins over the default of NetworkManager.conf(5).
        return Persistence(
            "networkmanager",
            "networkmanager",
            stored=int(mtu),
            foreign=f"its profile sets 802-3-ethernet.mtu {mtu}",
        )
    return networkmanager_own(port, host)


def networkmanager_own(port: PortHardware, host: Host) -> Persistence:
    """The default of a profile without an MTU: our section, unless a file that goes before it has one."""
    beyond = [row for row in host.lines("nmconf").rows if later(row[0], PATHS.networkmanager)]
    if beyond:
        path, number, text = beyond[-1]
        return Persistence("networkmanager", problem=f"{path}:{number} has {text} and goes before our file")
    file = host.ours.get(PATHS.networkmanager)
    own = re.search(
        rf"^match-device=interface-name:{re.escape(port.name)}\nethernet\.mtu=(\d+)$",
        (file.text or "") if file else "",
        re.MULTILINE,
    )
    return Persistence("networkmanager", "networkmanager", stored=int(own[1]) if own else DEFAULT_MTU)


# ---------------------------------------------------------------- ifupdown, ifcfg


def ifupdown(port: PortHardware, host: Host) -> Persistence | None:
    """/etc/network/interfaces: the stanza `iface PORT` and every line of it that sets an MTU."""
    found = host.lines("ifupdown")
    if found.unread:
        return Persistence("ifupdown", problem=f"{found.unread[0]} cannot be read")
    claimed, inside, stored = False, False, ""
    for path, number, text in found.rows:
        words = text.split()
        if words[:1] == ["iface"]:
            inside = words[1:2] == [port.name] and words[2:3] != ["inet6"]
            claimed = claimed or words[1:2] == [port.name]
            if inside and "inherits" in words:
                return Persistence("ifupdown", problem=f"{path}:{number} inherits from another stanza")
        elif words[:1] and words[0] in ("auto", "mapping", "source", "source-directory", "rename"):
            inside = False
        elif inside:
            value = re.search(r"\bmtu\s+(\d+)\b", text)
            stored = f"{path}:{number}: {value[1]}" if value else stored
    if not claimed:
        return None
    if host.section("ifupdown2").text.strip():
        # ifupdown2 gives ports without an mtu line its policy's default whenever it reloads.
        text = "ifupdown2 sets the MTU of every stanza: set mtu in its own"
        return _foreign("ifupdown", stored) if stored else Persistence("ifupdown", problem=text)
    return _foreign("ifupdown", stored)


def ifcfg(port: PortHardware, host: Host) -> Persistence | None:
    """ifcfg files of network-scripts and of wicked."""
    by_path: dict[str, dict[str, Setting]] = {}
    for path, number, text in host.lines("ifcfg").rows:
        key, _, value = text.partition("=")
        by_path.setdefault(path, {})[key.strip()] = Setting(value.strip().strip("\"'"), path, number)
    for path, rows in by_path.items():
        device = rows.get("DEVICE", Setting("", path)).value
        if not path.endswith(f"/ifcfg-{port.name}") and device != port.name:
            continue
        mtu = rows.get("MTU", Setting("", path))
        if "/network-scripts/" not in path and not mtu.value:
            return Persistence("ifcfg", problem=f"wicked configures it: set MTU in {path}")
        return _foreign("ifcfg", f"{mtu.place}: {mtu.value}" if mtu.value else "")
    return None


def _foreign(manager: str, foreign: str) -> Persistence:
    """A manager without drop-ins: its own value counts, else our unit keeps the MTU."""
    value = foreign.rpartition(": ")[2]
    stored: Maybe[int] = int(value) if value.isdigit() else (UNKNOWN if foreign else DEFAULT_MTU)
    return Persistence(manager, "unit", stored=stored, foreign=foreign)


READERS: Final = {
    "netplan": netplan,
    "networkd": networkd,
    "networkmanager": networkmanager,
    "ifupdown": ifupdown,
    "ifcfg": ifcfg,
}


def claims(port: PortHardware, host: Host) -> dict[str, Persistence]:
    """Every manager that names the port."""
    found = {name: reader(port, host) for name, reader in READERS.items()}
    return {name: claim for name, claim in found.items() if claim is not None}


def as_unit(claim: Persistence, stored: Maybe[int]) -> Persistence:
    """The same claim, kept by our unit."""
    return replace(claim, writer="unit", stored=stored)
