"""Counters of a host's ports: the kernel's, the NIC driver's by `ethtool -S`, the RDMA device's, the HCA's.

A NIC part is a table of its driver's counters; everything else is the same for all of them. Sources: Linux
Documentation/networking/statistics.rst and ethtool-netlink.rst (FEC statistics), infiniband-diags 44.0
(perfquery), InfiniBand Architecture Specification 16.1.3.5 (PortCounters and where they stop).
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.vitals import Count, Kind, Vitals

TEMPLATE: Final = "_shared/host/vitals.sh.j2"
_PORTS: Final = 24
"""Ports in one question, so that it stays a line that every shell takes."""

What = Literal["base", "nic", "ib"]
Rows = tuple[tuple[str, Kind], ...]
"""(regular expression of a counter's name, what it counts); its group is the priority."""

_NETDEV: Final[Rows] = (
    (r"statistics/rx_crc_errors", "crc"),
    # rx_dropped is left out: it also counts frames that nobody on the host wanted.
    (r"statistics/rx_fifo_errors", "discards"),
    (r"statistics/rx_missed_errors", "discards"),
    (r"carrier_down_count", "down"),
)
_PORT_COUNTERS: Final[Mapping[str, tuple[Kind, int]]] = {
    "SymbolErrorCounter": ("symbol", 0xFFFF),
    "LinkErrorRecoveryCounter": ("errors", 0xFF),
    "LinkDownedCounter": ("down", 0xFF),
    "PortRcvErrors": ("errors", 0xFFFF),
    "PortXmitDiscards": ("discards", 0xFFFF),
    "LocalLinkIntegrityErrors": ("errors", 0xF),
    "ExcessiveBufferOverrunErrors": ("errors", 0xF),
    "PortXmitWait": ("waits", 0xFFFF_FFFF),
}
"""Name -> kind, and the value at which it stays until somebody clears it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Context of the question: ports as "name=RDMA device"."""

    words: str
    what: What


def questions(ports: Iterable[PortHardware], what: What) -> tuple[str, ...]:
    """The scripts for these ports; bonds, VLANs and virtual functions have no counters of a cable."""
    words = [f'"{port.name}={port.rdma}"' for port in ports if what == "base" or port.kind == "physical"]
    starts = range(0, len(words), _PORTS)
    return tuple(host.question(TEMPLATE, Asked(" ".join(words[at : at + _PORTS]), what)) for at in starts)


def _sections(answers: Mapping[str, str], asked: tuple[str, ...]) -> Mapping[str, Section]:
    return host.sections("\n".join(answers.get(question, "") for question in asked))


def base(answers: Mapping[str, str], hw: Hardware) -> Vitals:
    """Counters and addresses that the kernel has of every port."""
    parts = _sections(answers, questions(hw.ports, "base"))
    counts: list[Count] = []
    addresses: list[tuple[str, str]] = []
    for port in hw.ports:
        if port.kind == "physical":
            counts += _counts(port.name, _files(parts.get(f"netdev {port.name}")), _NETDEV)
        addresses += [(port.name, one) for one in _addresses(parts.get(f"addresses {port.name}"))]
    return Vitals(tuple(counts), tuple(addresses))


def nic(answers: Mapping[str, str], ports: tuple[PortHardware, ...], rows: Rows) -> Vitals:
    """Counters that a NIC's driver and RDMA device have, by the table of its part."""
    parts = _sections(answers, questions(ports, "nic"))
    counts: list[Count] = []
    for port in ports:
        if port.kind != "physical":
            continue
        for name in ("nic", "rdma"):
            section = parts.get(f"{name} {port.name}")
            counts += _counts(port.name, _ethtool(section) if name == "nic" else _files(section), rows)
        counts += _fec(port.name, parts.get(f"fec {port.name}"))
    return Vitals(tuple(counts))


def infiniband(answers: Mapping[str, str], ports: tuple[PortHardware, ...]) -> Vitals:
    """PortCounters of the host's own ports, and their lanes."""
    parts = _sections(answers, questions(ports, "ib"))
    counts: list[Count] = []
    lanes: list[tuple[str, int]] = []
    for port in ports:
        for name, value in _dotted(parts.get(f"counters {port.name}")).items():
            if name in _PORT_COUNTERS and value.isdigit():
                kind, ceiling = _PORT_COUNTERS[name]
                counts.append(Count(port.name, kind, int(value), name, ceiling=ceiling))
        info = _dotted(parts.get(f"info {port.name}"))
        width = re.match(r"(\d+)X", info.get("LinkWidthActive", ""))
        if width and info.get("LinkState", "").startswith(("Active", "Armed", "Init")):
            lanes.append((port.name, int(width[1])))
    return Vitals(tuple(counts), lanes=tuple(lanes))


def _files(section: Section | None) -> Iterator[tuple[str, int]]:
    """Lines "FILE:NUMBER"."""
    for line in section.lines if section and section.asked else ():
        if match := re.fullmatch(r"([\w/]+):(\d+)", line.strip()):
            yield match[1], int(match[2])


def _ethtool(section: Section | None) -> Iterator[tuple[str, int]]:
    """Lines "     name: NUMBER"; some drivers put blanks or brackets into names."""
    for line in section.lines if section and section.ok else ():
        if match := re.fullmatch(r"\s+(\S[^:]*?)\s*:\s*(\d+)\s*", line):
            yield match[1], int(match[2])


def _counts(port: str, found: Iterable[tuple[str, int]], rows: Rows) -> Iterator[Count]:
    for name, value in found:
        for pattern, kind in rows:
            if match := re.fullmatch(pattern, name):
                priority = int(match[1]) if match.groups() else -1
                yield Count(port, kind, value, name.rpartition("/")[2], priority=priority)


def _fec(port: str, section: Section | None) -> Iterator[Count]:
    """`ethtool -I --show-fec`: the sum of all lanes stands before theirs."""
    found = re.findall(r"^\s+uncorrectable_blocks:\s*(\d+)\s*$", section.text, re.M) if section else []
    if section and section.ok and found:
        yield Count(port, "fec", int(found[0]), "FEC uncorrectable_blocks")


def _dotted(section: Section | None) -> dict[str, str]:
    """`Name:.....value` lines."""
    lines = section.lines if section and section.ok else ()
    rows = (re.fullmatch(r"(\w+):\.*(.*)", line.strip()) for line in lines)
    return {row[1]: row[2].strip() for row in rows if row}


def _addresses(section: Section | None) -> Iterator[str]:
    """`ip -j addr show dev PORT`: global addresses; link-local ones do not cross a router."""
    text = section.text if section and section.ok else ""
    start = text.find("[")
    try:
        rows = json.loads(text[start:]) if start >= 0 else []
    except ValueError:
        return
    for row in rows if isinstance(rows, list) else ():
        for one in row.get("addr_info", ()) if isinstance(row, dict) else ():
            if isinstance(one, dict) and one.get("scope") == "global" and not one.get("deprecated"):
                yield from _address(str(one.get("local", "")))


def _address(text: str) -> Iterator[str]:
    """The address in its plain form; other hosts will be given it as an argument."""
    try:
        yield str(ipaddress.ip_address(text))
    except ValueError:
        return
