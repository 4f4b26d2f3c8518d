"""Bounds of a priority's headroom: what no device can do without, what is usual, what vendors ship."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources

from rdma_fabric.checker.rules._buffers import least_headroom, usual_headroom
from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Asic

Rows = tuple[tuple[int, int], ...]
"""(metres, bytes), ascending."""


@cache
def shipped() -> Mapping[tuple[str, int], Rows]:
    """(ASIC, Gbit/s) -> the smallest headroom that any SKU with it ships per length of cable.

    From the headroom tables of SONiC's device folders, without rows that are no headroom at all.
    """
    text = resources.files("rdma_fabric.data").joinpath("headroom.csv").read_text(encoding="utf-8")
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for row in csv.DictReader(text.splitlines()):
        key = row["asic"], int(row["speed_gbps"])
        found.setdefault(key, []).append((int(row["cable_m"]), int(row["xoff_bytes"])))
    return {key: tuple(sorted(rows)) for key, rows in found.items()}


def shipped_headroom(asic: Asic, gbps: int, metres: int) -> int:
    """The least that is shipped for this ASIC, speed and length, or for a longer cable; 0 where nothing is.

    Between two lengths the shorter one's bytes grow as the formula does.
    """
    rows = shipped().get((asic.name, gbps), ())
    if not rows:
        return 0
    length, size = max((row for row in rows if row[0] <= metres), default=rows[0])
    scaled = round(size * usual_headroom(gbps, metres) / usual_headroom(gbps, length))
    longer = min((row[1] for row in rows if row[0] >= metres), default=scaled)
    return min(scaled, longer)


def longest_shipped(asic: Asic, gbps: int) -> int:
    """The longest cable in metres for which anybody ships a headroom; 0 where nothing is."""
    return max((metres for metres, _ in shipped().get((asic.name, gbps), ())), default=0)


def verdict(size: int, asic: Asic | None, gbps: int, metres: int) -> tuple[Severity, int, str] | None:
    """(severity, bound in bytes, whose bound it is) of a headroom that is too small, else None."""
    least = least_headroom(gbps, metres)
    if size < least:
        return Severity.ERROR, least, "two frames and the cable"
    table = shipped_headroom(asic, gbps, metres) if asic else 0
    if asic is not None and table:
        return (Severity.WARNING, table, f"least that is shipped for {asic.name}") if size < table else None
    usual = usual_headroom(gbps, metres)
    if size >= usual:
        return None
    # Without the ASIC nobody can say what its vendor ships: 390 of 2446 shipped rows are below this bound.
    return Severity.WARNING if asic else Severity.NOTE, usual, "with reaction time"
