"""Reads what every NIC with a DCB driver answers alike: iproute2's `dcb -j` and `ethtool -a` -> knobs."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from rdma_fabric.platforms._host_files import Section
from rdma_fabric.platforms._host_qos import UNREAD

Parts = Mapping[str, Section]
Entries = tuple[tuple[int, int], ...]
"""APP entries of one selector as (DSCP or UDP port, priority), sorted."""

ROCE_PORT: Final = 4791
TSA: Final = ("ets", "strict", "vendor")
"""As dcb spells them; no driver of a NIC that we know takes the credit-based shaper."""
APP: Final = (
    "ethtype_prio",
    "default_prio",
    "dscp_prio",
    "stream_port_prio",
    "dgram_port_prio",
    "port_prio",
    "pcp_prio",
)
"""What `dcb app` lists (iproute2 dcb_app.c)."""


def table(parts: Parts, name: str) -> Mapping[str, Any]:
    """One `dcb -j OBJECT show`; {} for anything that is no JSON object."""
    section = parts.get(name, Section())
    try:
        data = json.loads(section.text) if section.ok else None
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def pfc(data: Mapping[str, Any]) -> dict[str, str]:
    """`prio_pfc` as PFC=0,0,0,1,..."""
    bits = legal(data.get("prio_pfc"), bool, (False, True))
    return {"PFC": ",".join("1" if bit else "0" for bit in bits)} if bits else {}


def legal(value: object, kind: type, items: Container[Any]) -> list[Any]:
    """The value when it is a list of eight legal items of that very type, else nothing."""
    if not isinstance(value, list) or len(value) != 8:
        return []
    return value if all(type(item) is kind and item in items for item in value) else []


def ets(data: Mapping[str, Any]) -> dict[str, str]:
    """PRIO_TC, TSA and TCBW; the weight of a class that is not ETS means nothing."""
    tsa, prio_tc = legal(data.get("tc_tsa"), str, TSA), legal(data.get("prio_tc"), int, range(8))
    weight = legal(data.get("tc_bw"), int, range(101))
    if not (tsa and weight and prio_tc):
        return {}
    pairs = zip(tsa, weight, strict=True)
    return {
        "PRIO_TC": ",".join(map(str, prio_tc)),
        "TSA": ",".join(tsa),
        "TCBW": ",".join(str(percent) if kind == "ets" else "0" for kind, percent in pairs),
    }


def apps(section: Section) -> Mapping[str, Any] | None:
    """`dcb -j app show`; {} of a port without entries, None for anything that is not such an object."""
    try:
        data = json.loads(section.text) if section.ok else None
    except ValueError:
        return None
    return data if isinstance(data, dict) and set(data) <= set(APP) else None


def entries(data: Mapping[str, Any], name: str, top: int) -> Entries | None:
    """`dscp_prio` or `dgram_port_prio`; None for entries that are not understood.

    An entry is [key, priority], from iproute2 6.5 on with a stray third item.
    """
    found = set()
    rows = data.get(name, [])
    for row in rows if isinstance(rows, list) else [None]:
        if not (isinstance(row, list) and len(row) >= 2 and all(type(item) is int for item in row[:2])):
            return None
        key, priority = row[:2]
        if not (0 <= key <= top and 0 <= priority < 8):
            return None
        found.add((key, priority))
    return tuple(sorted(found))


def priorities(found: Entries, default: str = "0") -> str:
    """All 64 DSCPs; one with two entries cannot be told."""
    row = [default] * 64
    for dscp in {dscp for dscp, _ in found}:
        have = [priority for key, priority in found if key == dscp]
        row[dscp] = str(have[0]) if len(have) == 1 else UNREAD
    return ",".join(row)


def dcbx(section: Section) -> dict[str, str]:
    """`dcb dcbx show`: "host ieee", "lld-managed ieee"; without host a firmware agent owns the port
    (drivers then refuse every write)."""
    words = section.text.split()
    if not section.ok or not words or not set(words) <= {"host", "lld-managed", "ieee", "cee", "static"}:
        return {}
    return {"DCBX": "host" if "host" in words else "firmware"}


def pause(section: Section) -> dict[str, str]:
    """`ethtool -a`: 802.3x pause is on when either side is."""
    sides = re.findall(r"^(RX|TX):[ \t]+(on|off)[ \t]*$", section.text, re.MULTILINE)
    if not section.ok or sorted(side for side, _ in sides) != ["RX", "TX"]:
        return {}
    return {"PAUSE": "on" if "on" in {state for _, state in sides} else "off"}


def doubled(found: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Keys that have more than one priority."""
    keys = [key for key, _ in found]
    return tuple(sorted({key for key in keys if keys.count(key) > 1}))
