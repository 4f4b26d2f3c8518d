"""Texts of OpenSM's files: options that we own inside a foreign opensm.conf, partitions, service levels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rdma_fabric.inventory.partitions import code_of_mtu, code_of_rate
from rdma_fabric.state import UNKNOWN, UNMANAGED, Absent, Maybe, Partition, SmState

FOLDER: Final = "/etc/opensm/"
CONF: Final = f"{FOLDER}opensm.conf"
PARTITIONS: Final = f"{FOLDER}partitions.conf"
POLICY: Final = f"{FOLDER}qos-policy.conf"
DEFAULTS: Final = "/etc/default/opensm"
MARK: Final = "/run/fabric-opensm"
"""Touched when we made OpenSM read its files, so that a later read-back can tell."""
TABLE: Final = "/var/cache/opensm/guid2lid"
"""Port GUID -> first and last LID (osm_db_files.c): the master writes it, every manager starts with its own.

A manager that starts as master gives out the LIDs of its table, whatever the ports have; one that takes
over from standby forgets the table, or keeps to it with `honor_guid2lid_file TRUE` (osm_lid_mgr.c).
"""

LANE_CODES: Final[Mapping[int, int]] = {1: 1, 2: 2, 4: 3, 8: 4, 15: 5}
"""Data lanes -> max_op_vls: 1=VL0, 2=VL0-1, 3=VL0-3, 4=VL0-7, 5=VL0-14."""
_LANES: Final = {code: lanes for lanes, code in LANE_CODES.items()}

RESTART: Final = frozenset(
    {
        "guid",
        "lmc",
        "routing_engine",
        "lfts_file",
        "allow_both_pkeys",
        "partition_config_file",
        "qos_policy_file",
    }
)
"""Options of ours that a running OpenSM does not take from the file (can_update 0 in osm_subnet.c)."""

_UNSET: Final = "(null)"
_EMPTY: Final = (_UNSET, "")


RETURN: Final = "\x01"
"""Stands for a carriage return in what is read: sessions take those at ends of lines away."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One partition as its file has it."""

    head: str
    members: tuple[str, ...]
    groups: tuple[str, ...] = ()


def statement(one: Partition) -> Statement:
    """The partition with the codes that OpenSM wants instead of MTU and rate."""
    words = [f"{one.name}=0x{one.pkey:04x}"]
    words += ["indx0"] if one.index0 else []
    words += ["ipoib"] if one.ipoib else []
    grouped = one.ipoib or one.groups
    if grouped:
        words.append(f"mtu={code_of_mtu(one.mtu)}")
        if rate := code_of_rate(one.rate):
            words.append(f"rate={rate}")
    words.append(f"sl={one.sl}")
    if grouped and isinstance(one.scope, int):
        words.append(f"scope={one.scope}")
    return Statement(", ".join(words), one.members, one.groups)


# ---------------------------------------------------------------- options


def options(wanted: SmState) -> dict[str, str | None]:
    """Option -> its value in opensm.conf, None for "not in the file"; only what the state owns."""
    found: dict[str, str | None] = {}
    if isinstance(wanted.guid, str):
        found["guid"] = wanted.guid if int(wanted.guid, 16) else None
    if isinstance(wanted.priority, int):
        found["sm_priority"] = str(wanted.priority)
    if isinstance(wanted.lmc, int):
        found["lmc"] = str(wanted.lmc) if wanted.lmc else None
    if isinstance(wanted.routing, tuple):
        found["routing_engine"] = ",".join(wanted.routing) or None
    if isinstance(wanted.lfts, str):
        found["lfts_file"] = wanted.lfts
    if isinstance(wanted.both, bool):
        found["allow_both_pkeys"] = "TRUE" if wanted.both else None
    if not isinstance(wanted.partitions, Absent):
        found["partition_config_file"] = PARTITIONS
    if isinstance(wanted.vls, int):
        found |= _qos(wanted, wanted.vls)
    return found


def _qos(wanted: SmState, lanes: int) -> dict[str, str | None]:
    names = ("qos_max_vls", "qos_high_limit", "qos_vlarb_high", "qos_vlarb_low", "qos_sl2vl")
    if not lanes:
        return {"qos": None, "qos_policy_file": None, "max_op_vls": None, **dict.fromkeys(names)}
    values: dict[str, str | None] = {
        "qos": "TRUE",
        "qos_policy_file": POLICY,
        "qos_max_vls": str(lanes),
        "max_op_vls": str(LANE_CODES[lanes]),
    }
    if isinstance(wanted.high_limit, int):
        values["qos_high_limit"] = str(wanted.high_limit)
    for name, value in (
        ("qos_vlarb_high", wanted.high),
        ("qos_vlarb_low", wanted.low),
        ("qos_sl2vl", wanted.sl_to_vl),
    ):
        if isinstance(value, tuple):
            values[name] = ",".join(map(str, value)) or None
    return values


def read_options(text: str) -> dict[str, str]:
    """Option -> value; of an option that is written twice the last one counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, value = _option(line)
        if name:
            found[name] = value
    return found


def _option(line: str) -> tuple[str, str]:
    words = line.partition("#")[0].split(None, 1)
    return (words[0], words[1].strip() if len(words) > 1 else "") if words else ("", "")


def merged(text: str, wanted: Mapping[str, str | None], lines: Mapping[str, str]) -> str:
    """The file with our options as wanted, each at its old place or at the end; every other line as it is.

    `lines` has the rendered line of every option that is to be there.
    """
    last = {name: index for index, line in enumerate(text.splitlines()) if (name := _option(line)[0])}
    rows = []
    for index, line in enumerate(text.splitlines()):
        name, value = _option(line)
        if name not in wanted:
            rows.append(line)
        elif wanted[name] is not None and last[name] == index:
            rows.append(line if value == wanted[name] else lines[name])
    rows += [lines[name] for name, value in wanted.items() if value is not None and name not in last]
    return "\n".join(rows) + "\n" if rows else ""


def merged_ports(text: str, line: str) -> str:
    """/etc/default/opensm with the line that names the port, every other line as it is."""
    rows = text.splitlines()
    at = [index for index, row in enumerate(rows) if row.strip().startswith("PORTS=")]
    for index in at[:-1]:
        rows[index] = f"#{rows[index]}"
    if at:
        rows[at[-1]] = line
    return "\n".join(rows if at else [*rows, line]) + "\n"


# ---------------------------------------------------------------- read


def read_values(found: Mapping[str, str]) -> tuple[dict[str, object], list[str]]:
    """Fields of SmState that options decide, with OpenSM's defaults, and what was not understood."""
    notes: list[str] = []
    values: dict[str, object] = {
        "priority": _number(found, "sm_priority", 0, 15, notes),
        "lmc": _number(found, "lmc", 0, 7, notes),
        "routing": _list(found, "routing_engine"),
        "lfts": "" if found.get("lfts_file", _UNSET) in _EMPTY else found["lfts_file"],
        "both": found.get("allow_both_pkeys", "FALSE").upper() == "TRUE",
        "guid": _guid(found),
    }
    if found.get("qos", "FALSE").upper() != "TRUE":
        return {**values, **_NO_LANES}, notes
    code = _number(found, "max_op_vls", 1, 5, notes, 5)
    values |= {
        "vls": _LANES[code] if isinstance(code, int) else code,
        "high_limit": _number(found, "qos_high_limit", -1, 255, notes, -1),
        "high": _list(found, "qos_vlarb_high"),
        "low": _list(found, "qos_vlarb_low"),
        "sl_to_vl": _lanes(found, notes),
    }
    return values, notes


_NO_LANES: Final[Mapping[str, object]] = {
    "vls": 0,
    "high_limit": 0,
    "high": (),
    "low": (),
    "sl_to_vl": (0,) * 16,
    "levels": ("default: 0",),
}
"""What `qos FALSE` means: everything on lane 0."""


def _number(
    found: Mapping[str, str], name: str, low: int, high: int, notes: list[str], default: int = 0
) -> Maybe[int]:
    """The option; OpenSM falls back to the default where the value is out of range."""
    text = found.get(name, _UNSET)
    if text in _EMPTY:
        return default
    try:
        number = int(text, 0)
    except ValueError:
        number = high + 1
    if low <= number <= high:
        return number
    notes.append(f"{CONF}: {name} {text} is out of range, OpenSM uses {default}")
    return default


def _list(found: Mapping[str, str], name: str) -> tuple[str, ...]:
    text = found.get(name, _UNSET)
    return () if text in _EMPTY else tuple(word.strip() for word in text.split(","))


def _lanes(found: Mapping[str, str], notes: list[str]) -> Maybe[tuple[int, ...]]:
    words = _list(found, "qos_sl2vl")
    if not words:
        return (*range(15), 7)  # OSM_DEFAULT_QOS_SL2VL
    if len(words) == 16 and all(word.isdigit() and int(word) <= 15 for word in words):
        return tuple(map(int, words))
    notes.append(f"{CONF}: qos_sl2vl {','.join(words)} is not 16 lanes")
    return UNKNOWN


def _guid(found: Mapping[str, str]) -> Maybe[str]:
    text = found.get("guid", "0")
    try:
        return f"0x{int(text, 16):016x}"
    except ValueError:
        return UNKNOWN


def read_levels(text: str) -> Maybe[tuple[str, ...]]:
    """Rows of the simple form; UNKNOWN for a policy with levels and match rules of its own.

    A file that OpenSM does not use is like none.
    """
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    rows = [line for line in lines if line]
    if not rows or returns(text):
        return ("default: 0",)
    if rows[0] != "qos-ulps" or rows[-1] != "end-qos-ulps":
        return UNKNOWN
    return tuple(re.sub(r"\s*([,:])\s*", r"\1 ", row) for row in rows[1:-1])


def returns(text: str) -> int:
    """The first line (from 1) with a carriage return outside of comments, 0 for none.

    OpenSM takes it for a word: it drops partitions.conf and qos-policy.conf as a whole (run). In opensm.conf
    it is space.
    """
    rows = (line.partition("#")[0] for line in text.split("\n"))
    return next((number for number, row in enumerate(rows, 1) if "\r" in row), 0)


def groups(text: str) -> dict[int, tuple[int, int, int]]:
    """P_Key without the membership bit -> (MTU code, rate code, SL) of its IPoIB broadcast group."""
    found: dict[int, tuple[int, int, int]] = {}
    for block in _blocks(text):
        gid = block.get("MGID", "")
        match = re.fullmatch(r"ff1[0-9a-f]:401b:([0-9a-f]+)::ffff:ffff", gid)
        if match:
            numbers = [int(block.get(name, "0"), 0) for name in ("Mtu", "Rate", "SL")]
            found[int(match.group(1), 16) & 0x7FFF] = numbers[0] & 0x3F, numbers[1] & 0x3F, numbers[2]
    return found


def _blocks(text: str) -> Iterator[dict[str, str]]:
    block: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("MCMemberRecord"):
            if block:
                yield block
            block = {}
        elif match := re.fullmatch(r"\s+(\w+)\.+(\S+)", line):
            block[match.group(1)] = match.group(2)
    if block:
        yield block


__all__ = ["UNMANAGED", "Statement", "groups", "merged", "options", "read_levels", "read_options"]
