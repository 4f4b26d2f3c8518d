"""Published ECN thresholds by source name, for `profile: NAME` in the intent (sources are in the rows)."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Published:
    """One published ramp; bytes and percent; `speeds_gbps` empty when the source names none."""

    source: str
    context: str
    speeds_gbps: tuple[int, ...]
    kmin: int
    kmax: int
    pmax: float
    url: str


@cache
def published() -> tuple[Published, ...]:
    """Every row of the table that gives kmin and kmax in bytes."""
    text = resources.files("rdma_fabric.data").joinpath("thresholds.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(_row(row) for row in rows if row["kmin_bytes"].isdigit() and row["kmax_bytes"].isdigit())


def _row(row: dict[str, str]) -> Published:
    speeds = re.findall(r"\b(\d+)G\b", row["context"].split(";")[0])
    pmax = row["pmax_percent"]
    return Published(
        source=row["source"],
        context=row["context"],
        speeds_gbps=tuple(int(speed) for speed in speeds),
        kmin=int(row["kmin_bytes"]),
        kmax=int(row["kmax_bytes"]),
        pmax=float(pmax) if re.fullmatch(r"\d+(\.\d+)?", pmax) else 100.0,
        url=row["source_url"],
    )


def names() -> tuple[str, ...]:
    """The names that `profile:` accepts."""
    return tuple(sorted({row.source for row in published()}))


def find(name: str, speed_gbps: int) -> Published | None:
    """The ramp of that source for ports of that speed; a row without speeds serves every speed."""
    rows = [row for row in published() if row.source == name]
    exact = [row for row in rows if speed_gbps in row.speeds_gbps]
    return next(iter([*exact, *(row for row in rows if not row.speeds_gbps)]), None)
