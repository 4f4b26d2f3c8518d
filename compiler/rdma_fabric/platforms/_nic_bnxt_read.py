"""Reads a bnxt port: output of dcb, niccli, bnxtqos, ethtool and the driver's files -> knobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rdma_fabric.platforms import _host_dcb as dcb
from rdma_fabric.platforms import _host_files as host
from rdma_fabric.platforms import _host_qos as qos_file
from rdma_fabric.platforms import _nic_bnxt_nv as nv
from rdma_fabric.platforms._host_dcb import Entries, Parts
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._host_qos import UNREAD
from rdma_fabric.platforms._nic_bnxt_knobs import NONE, PARAMETERS, Where, number

_WORDS: Final = {
    "Enabled": "1",
    "Disabled": "0",
    "Not-ECT": "0",
    "ECT(1)": "1",
    "ECT(0)": "2",
    "DCQCN-D": "0",
    "DCQCN-P": "1",
    "TCP": "1",
}
"""Words of `cat apply` (driver configfs.c); the second mode is DCQCN-P, or TCP on older chips."""
_LABEL: Final = re.compile(r".*\(([A-Za-z0-9_ ]+)\)\s*:")
_APPLIED: Final = re.compile(_LABEL.pattern + r"\s*(\S+)(?: (?:usec|rtts?|bits|byte/usec|cnps))?\s*")
_STAGED: Final = (
    ("ECN", "ecn_enable"),
    ("MODE", "cc_mode"),
    ("ROCE_DSCP", "roce_dscp"),
    ("CNP_DSCP", "cnp_dscp"),
    ("CNP_PRIO", "cnp_prio"),
)
_AT_ONCE: Final = (
    ("ECN", "enable_cc"),
    ("MODE", "cc_mode"),
    ("ROCE_DSCP", "tos_dscp"),
    ("CNP_DSCP", "alt_vlan_dscp"),
    ("CNP_PRIO", "alt_vlan_pcp"),
)
"""Knob -> file of configfs, of debugfs."""


# ---------------------------------------------------------------- QoS


_HEAD: Final = re.compile(r"IEEE 8021QAZ (ETS Configuration|PFC|APP) TLV:")
_END: Final = re.compile(r"TC Rate Limit:(?: +[0-9]+%)+")
_ENTRY: Final = tuple(
    map(re.compile, (r"APP#([0-9]+):", r"Priority: ([0-7])", r"Sel: ([0-9])", r"([A-Za-z ]+): (\S+)"))
)
"""The four lines of one entry."""


def _tables(text: str) -> dict[str, list[str]]:
    """The lines of each table of niccli's print; {} for one that was cut off or is none of niccli's.

    Every published print of all releases ends with the rate limits (ROCm's network guide, node-scraper).
    """
    found: dict[str, list[str]] = {}
    table: list[str] | None = None
    ends = 0
    for line in filter(None, map(str.strip, text.splitlines())):
        if head := _HEAD.fullmatch(line):
            if head[1] in found:
                return {}
            table = found[head[1]] = []
        elif _END.fullmatch(line):
            table, ends = None, ends + 1
        elif "8021QAZ" in line or "Rate Limit" in line:
            return {}
        elif table is not None:
            table.append(line)
    return found if ends == 1 else {}


def entries(text: str) -> tuple[Entries | None, Entries | None]:
    """(DSCP entries, entries of UDP ports) of the APP table of niccli's print; None: not understood.

    A port without entries has no such table.
    """
    tables = _tables(text)
    if "APP" not in tables:
        return ((), ()) if _pfc(tables) else (None, None)
    lines = tables["APP"]
    if len(lines) % len(_ENTRY):
        return None, None
    dscps: set[tuple[int, int]] = set()
    ports: set[tuple[int, int]] = set()
    for place, start in enumerate(range(0, len(lines), len(_ENTRY))):
        rows = [form.fullmatch(line) for form, line in zip(_ENTRY, lines[start:], strict=False)]
        index, priority, selector, last = (row.groups() if row else ("",) for row in rows)
        if index != (str(place),) or "" in (*priority, *selector, *last):
            return None, None
        known = {"5": ("DSCP", 63, dscps), "3": ("UDP or DCCP", 0xFFFF, ports)}.get(selector[0])
        if known is not None:
            label, top, into = known
            if last[0] != label or not (last[1].isdigit() and last[1].isascii() and int(last[1]) <= top):
                return None, None
            into.add((int(last[1]), int(priority[0])))
    return tuple(sorted(dscps)), tuple(sorted(ports))


def qos(text: str) -> dict[str, str]:
    """The print of `niccli ... get_qos`, `getqos`, `qos --ets --show` or `bnxtqos ... get_qos`."""
    tables = _tables(text)
    return _ets(tables) | _pfc(tables) | _apps(*entries(text))


def _pfc(tables: Mapping[str, list[str]]) -> dict[str, str]:
    lines = tables.get("PFC", [])
    row = re.fullmatch(r"PFC enabled: *(none|[0-7](?:[ ,]+[0-7])*)", lines[0]) if len(lines) == 1 else None
    if row is None:
        return {}
    on = () if row[1] == NONE else re.split(r"[ ,]+", row[1])
    return {"PFC": ",".join("1" if str(priority) in on else "0" for priority in range(8))}


_ETS: Final = (
    re.compile(r"PRIO_MAP:((?: +[0-7]:[0-7]){8})"),
    re.compile(r"TC Bandwidth:((?: +[0-9]+%)+)"),
    re.compile(r"TSA_MAP:((?: +[0-7]:[a-z]+)+)"),
)


def _ets(tables: Mapping[str, list[str]]) -> dict[str, str]:
    """Only the classes that the card has are shown; the others serve nobody."""
    lines = tables.get("ETS Configuration", [])
    rows = [form.fullmatch(line) for form, line in zip(_ETS, lines, strict=False)]
    if len(lines) != len(_ETS) or None in rows:
        return {}
    shown, percents, kinds = (row[1] if row else "" for row in rows)
    prio_tc, tsa = _pairs(shown), _pairs(kinds)
    weight = [word.rstrip("%") for word in percents.split()]
    if sorted(prio_tc) != list(range(8)) or sorted(tsa) != list(range(len(weight))):
        return {}
    every = [tsa.get(tc, UNREAD) for tc in range(8)]
    pairs = ((kind, weight[tc] if tc < len(weight) else UNREAD) for tc, kind in enumerate(every))
    return {
        "PRIO_TC": ",".join(prio_tc[priority] for priority in range(8)),
        "TSA": ",".join(every),
        "TCBW": ",".join(percent if kind == "ets" else "0" for kind, percent in pairs),
    }


def _pairs(text: str) -> dict[int, str]:
    return {int(key): value for key, value in re.findall(r"(\d):(\w+)", text)}


def _apps(dscps: Entries | None, ports: Entries | None) -> dict[str, str]:
    """DSCP2PRIO, and ROCE: the priority of UDP 4791 that the driver takes for RoCE."""
    found = {} if dscps is None else {"DSCP2PRIO": dcb.priorities(dscps)}
    if ports is None:
        return found
    roce = [str(priority) for port, priority in ports if port == dcb.ROCE_PORT]
    return {**found, "ROCE": roce[0] if len(roce) == 1 else UNREAD if roce else NONE}


def apps(parts: Parts, port: str) -> tuple[Entries | None, Entries | None]:
    """The APP entries that the port showed, by whichever tool."""
    asked = parts.get(f"app {port}", Section())
    if asked.ok:
        data = dcb.apps(asked)
        if data is None:
            return None, None
        return dcb.entries(data, "dscp_prio", 63), dcb.entries(data, "dgram_port_prio", 0xFFFF)
    section = parts.get(f"qos {port}", Section())
    return entries(section.text) if section.ok else (None, None)


def _qos_knobs(parts: Parts, port: str) -> dict[str, str]:
    section = parts.get(f"qos {port}", Section())
    if section.asked:
        return qos(section.text) if section.ok else {}
    found = dcb.pfc(dcb.table(parts, f"pfc {port}")) | dcb.ets(dcb.table(parts, f"ets {port}"))
    return found | _apps(*apps(parts, port)) | dcb.dcbx(parts.get(f"dcbx {port}", Section()))


def traffic_classes(parts: Parts, port: str) -> int | None:
    """How many the card has: ets_cap of dcb, or as many as niccli shows."""
    section = parts.get(f"qos {port}", Section())
    if section.ok:
        kinds = _ets(_tables(section.text)).get("TSA", UNREAD).split(",")
        return len(kinds) - kinds.count(UNREAD) or None
    cap = dcb.table(parts, f"ets {port}").get("ets_cap")
    return cap if isinstance(cap, int) and not isinstance(cap, bool) and cap > 0 else None


def modes(section: Section) -> dict[int, str]:
    """`niccli ... qos --ingress --cosq --show`: traffic class -> Lossy or Lossless, of those in use."""
    rows = re.findall(r"^\s*([0-7])\s+Enabled\s+(Lossy|Lossless)\s*$", section.text, re.MULTILINE)
    return {int(tc): mode for tc, mode in rows} if section.ok else {}


def card_map(section: Section) -> Entries | None:
    """`niccli ... get_dscp2prio`: the table that the hardware has; None: not asked or not understood."""
    _, found, rest = section.text.partition("dscp2prio mapping:")
    rows = re.findall(r"^\s*priority:\s*([0-7])\s+dscp:\s*(\d+(?:[ ,]+\d+)*)[ ,]*$", rest, re.MULTILINE)
    if not section.ok or not found or len(rows) != len([row for row in rest.splitlines() if row.strip()]):
        return None
    pairs = {(int(point), int(priority)) for priority, points in rows for point in re.split(r"[ ,]+", points)}
    return tuple(sorted(pairs)) if all(point < 64 for point, _ in pairs) else None


# ---------------------------------------------------------------- congestion control


def applied(text: str) -> dict[str, str] | None:
    """`cat apply`: what the hardware has, by file name; "VLAN 0" for the priority tags, "" for what is not
    understood. None for a print that is none of the driver's."""
    found: dict[str, str] = {}
    for line in filter(str.strip, text.splitlines()):
        if line.startswith("slave "):
            continue  # of a bond's second port, which has the same settings
        label = _LABEL.match(line)
        if label is None:
            return None
        match = _APPLIED.fullmatch(line)
        value = number(_WORDS.get(match[2], match[2])) if match and label[1] not in found else ""
        found[label[1]] = value
    return found if found.get("ecn_enable") else None


def configfs(section: Section) -> dict[str, str]:
    """Files as "cnp_dscp=0x30", then a line "apply" and its print. The print counts: files hold what was
    written last, the hardware only gets it by `apply`."""
    files, _, printed = section.text.partition("\napply\n")
    shown = applied(printed) if section.ok else None
    if shown is None:
        return {}
    staged = {
        name: number(value if value.startswith("0x") else f"0x{value}")
        for name, value in host.File("", files).pairs().items()
    }
    have = {name: value for name, value in (staged | shown).items() if value}
    found = {}
    if "VLAN 0" in have and "disable_prio_vlan_tx" in have:
        # Tags start once there is a RoCE priority, unless the driver was told not to.
        quiet = (have["VLAN 0"], have["disable_prio_vlan_tx"]) == ("0", "1")
        found["VLAN0"] = "off" if quiet else "on"
    # Either codepoint marks the packets as able to be marked.
    found |= {"MARK": "1" if have["ecn_marking"] != "0" else "0"} if "ecn_marking" in have else {}
    found |= {key: have[file] for key, file in _STAGED if file in have}
    return found | {f"CC_{name}": have[file] for name, file, _ in PARAMETERS if file in have}


def debugfs(section: Section) -> dict[str, str]:
    """The kernel driver's cc_config as "enable_cc=1"; every file asks the hardware."""
    rows = host.File("", section.text).pairs() if section.ok else {}
    have = {name: value for name, value in rows.items() if value.isdigit()}
    found = {key: have[file] for key, file in _AT_ONCE if file in have}
    found |= {"MARK": "1" if have["tos_ecn"] != "0" else "0"} if "tos_ecn" in have else {}
    return found | {f"CC_{name}": have[file] for name, _, file in PARAMETERS if file in have}


def where(parts: Parts, port: str) -> Where | None:
    """Which files the driver has; None when the answer does not say."""
    word = parts.get(f"stack {port}", Section()).text.strip()
    places: tuple[Where, ...] = ("configfs", "debugfs", "none")
    return next((place for place in places if place == word), None)


def profile(parts: Parts, port: str) -> str | None:
    """fw_service_prof_type_sup; None where it cannot be read (the kernel's driver does not show it)."""
    text = parts.get(f"profile {port}", Section()).text
    match = re.search(r"fw_service_prof_type_sup\s*[:=]\s*([01])\s*$", text, re.MULTILINE)
    return match.group(1) if match else None


def port_knobs(parts: Parts, port: str) -> dict[str, str]:
    """Everything that one port showed."""
    found = _qos_knobs(parts, port) | dcb.pause(parts.get(f"pause {port}", Section()))
    found |= configfs(parts.get(f"cc {port}", Section())) | debugfs(parts.get(f"cc_debug {port}", Section()))
    return found | qos_file.rdma_cm(parts.get(f"tos {port}", Section()), parts.get(f"mode {port}", Section()))


# ---------------------------------------------------------------- the card


def notes(parts: Parts, port: str) -> list[str]:
    """What an operator should know of the port."""
    found = []
    dscps, udp = apps(parts, port)
    for word, keys in (("DSCP", dcb.doubled(dscps or ())), ("UDP port", dcb.doubled(udp or ()))):
        found += [
            f"{port}: {word} {key} has more than one priority; take all but one away (dcb app del)"
            for key in keys
        ]
    found += _hardware(parts, port, dscps)
    if owners(parts, port):
        found.append(
            f"{port}: the package bnxt_re_conf programs the port again whenever its RDMA device appears; "
            "set ENABLE_FC=0 in /etc/bnxt_re/bnxt_re.conf"
        )
    device, memory = (parts.get(f"{word} {port}", Section()) for word in ("device", "nv support_rdma"))
    if not device.text.strip() and memory.ok and nv.value(nv.RDMA, memory.text) == "0":
        found.append(
            f"{port}: its card has no RDMA device because support_rdma is off in its non-volatile memory; "
            "it counts after a reboot"
        )
    return found


def owners(parts: Parts, port: str) -> tuple[str, ...]:
    """Who else writes the port: the vendor's udev rule, unless it is told to do nothing."""
    vendor = parts.get(f"vendor {port}", Section())
    match = re.search(r"^\s*ENABLE_FC\s*=\s*\"?(\d+)", vendor.text, re.MULTILINE)
    return ("bnxt_re_conf",) if vendor.ok and (match is None or match.group(1) != "0") else ()


def _hardware(parts: Parts, port: str, dscps: Entries | None) -> list[str]:
    """Where niccli shows another hardware than the settings say."""
    found = []
    rows, mode = qos(parts.get(f"qos {port}", Section()).text), modes(parts.get(f"cosq {port}", Section()))
    pairs = zip(rows.get("PFC", "").split(","), rows.get("PRIO_TC", "").split(","), strict=False)
    for priority, (bit, tc) in enumerate(pairs):
        if bit == "1" and mode.get(int(tc)) == "Lossy":
            found.append(
                f"{port}: PFC is on for priority {priority}, but its traffic class {tc} is lossy: choose a "
                "RoCE profile in its non-volatile memory and reboot"
            )
    card = card_map(parts.get(f"dscps {port}", Section()))
    if card is not None and dscps is not None and set(card) != set(dscps):
        shown = " ".join(f"{dscp}:{priority}" for dscp, priority in card) or "none"
        found.append(f"{port}: its hardware has other DSCP entries than its driver tells: {shown}")
    return found


def facts(parts: Mapping[str, Section], port: str) -> dict[str, str]:
    """Tool, RDMA device and address of a port, as the lines and the reader need them."""
    found: dict[str, str] = {}
    for word in ("rdma", "tool", "bdf", "nvform"):
        section = parts.get(f"{word} {port}", Section())
        if section.ok and section.text.strip():
            found[f"{word} {port}"] = section.text.strip()
    count = traffic_classes(parts, port)
    if count is not None:
        found[f"classes {port}"] = str(count)
    dscps, udp = apps(parts, port)
    for word, rows in (("app", dscps), ("udp", udp)):
        if rows:
            found[f"{word} {port}"] = " ".join(f"{key}:{priority}" for key, priority in rows)
    if keys := qos_file.in_file(parts.get(f"conf {port}", Section())):
        found[f"conf {port}"] = keys
    return found
