"""Reads the card behind a port of any NIC: `ethtool -i`, `ibv_devinfo`, GID files -> `NicState`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rdma_fabric.platforms import _host_verbs as verbs
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.state import UNKNOWN, Maybe, NicState

Parts = Mapping[str, Section]

_GID: Final = re.compile(r"(?:[0-9a-f]{4}:){7}[0-9a-f]{4}")
_LINK_LOCAL: Final = "fe80:"
_VERSION: Final = re.compile(r"([0-9][0-9A-Za-z.+_~-]*)(?: \(.*\))?")


@dataclass(frozen=True, slots=True)
class Make:
    """How cards of one make tell their versions."""

    drivers: tuple[str, ...]
    """Kernel drivers whose ports are theirs."""
    firmware: str
    """The firmware's version, also as the beginning of what `ethtool -i` prints."""
    device: str = ""
    """The version that the RDMA device tells, where it is the same one."""


@dataclass(frozen=True, slots=True)
class Card:
    """What one port's card showed, and what an operator should know of it."""

    state: NicState
    notes: tuple[str, ...] = ()
    rows: Mapping[str, str] = field(default_factory=dict)
    """All rows of `ethtool -i`."""


def card(parts: Parts, port: str, make: Make) -> Card:
    """The card of one port; what programs disagree on, or none tells, is UNKNOWN."""

    def part(name: str) -> Section:
        return parts.get(f"{name} {port}", Section())

    rows, device = ethtool(part("driver")), devinfo(part("verbs"))
    notes: tuple[str, ...] = ()
    driver = rows.get("driver", "")
    if driver and driver not in make.drivers:
        notes = (f"{port}: its driver is {driver}, not {' or '.join(make.drivers)}",)
        rows = {}
    told = {
        found[1]
        for pattern, text in (
            (make.firmware, rows.get("firmware-version", "")),
            (make.device, device.get("firmware", "")),
        )
        if pattern and (found := re.match(rf"({pattern})(?![0-9.])", text))
    }
    version = _VERSION.fullmatch(rows.get("version", ""))
    state = NicState(
        firmware=told.pop() if len(told) == 1 else UNKNOWN,
        driver=version[1] if version else UNKNOWN,
        link=device.get("link", UNKNOWN),
        rdma_mtu=verbs.active_mtu(part("verbs")),
        gids=gids(part("gids"), port),
    )
    return Card(state, notes, rows)


def ethtool(section: Section) -> dict[str, str]:
    """`ethtool -i`; {} for anything else, also for a row that is there twice.

    The last line is none of those that we read; one of them at the end was cut off.
    """
    lines = section.text.rpartition("\n")[0]
    rows = re.findall(r"^([\w-]+):[ \t]*(.*?)\s*$", lines, re.MULTILINE)
    found = dict(rows)
    return found if section.ok and len(rows) == len(found) and found.get("driver") else {}


def devinfo(section: Section) -> dict[str, str]:
    """`ibv_devinfo -d DEVICE`, port 1: link, firmware, transport, where understood."""
    if not section.ok or len(re.findall(r"^hca_id:", section.text, re.MULTILINE)) != 1:
        return {}
    ports = re.split(r"^\s+port:\s+(\d+)\s*$", section.text, flags=re.MULTILINE)
    if len(ports) < 3 or ports[1] != "1":
        return {}
    found = {}
    if match := _row("link_layer", "(Ethernet|InfiniBand)", ports[2]):
        found["link"] = match[1].lower()
    if match := _row("fw_ver", "([0-9][0-9.]*)", ports[0]):
        found["firmware"] = match[1]
    if match := _row("transport", r"(\w+) \([0-9]+\)", ports[0]):
        found["transport"] = match[1]
    return found


def _row(name: str, value: str, text: str) -> re.Match[str] | None:
    """The row of that name, where it is there once."""
    rows = re.findall(rf"^\s+{name}:.*$", text, re.MULTILINE)
    return re.fullmatch(rf"\s+{name}:\s+{value}\s*", rows[0]) if len(rows) == 1 else None


def gids(section: Section, port: str) -> Maybe[tuple[int, ...]]:
    """Indexes of the port's RoCE v2 GIDs that carry an address, from lines "types/3:RoCE v2",
    "ndevs/3:eth0" and "gids/3:0000:...:c000:0201" of its RDMA device."""
    if not section.ok or not section.lines:
        return UNKNOWN
    rows: dict[tuple[str, int], str] = {}
    for line in section.lines:
        match = re.fullmatch(r"(types|ndevs|gids)/([0-9]{1,3}):(.+)", line.strip())
        if match is None:
            return UNKNOWN
        rows[match[1], int(match[2])] = match[3].strip()
    found = []
    for (kind, index), value in rows.items():
        if kind == "types" and value == "RoCE v2":
            gid, netdev = rows.get(("gids", index)), rows.get(("ndevs", index))
            if gid is None or netdev is None or not _GID.fullmatch(gid):
                return UNKNOWN
            if netdev == port and not gid.startswith(_LINK_LOCAL):
                found.append(index)
        elif kind == "types" and value != "IB/RoCE v1":
            return UNKNOWN
    return tuple(sorted(found))
