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
    """Every row of the table that gives a whole ramp in bytes.

    A row without pmax is one only where kmin equals kmax: a step marks everything above it.
    """
    text = resources.files("rdma_fabric.data").joinpath("thresholds.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(_row(row) for row in rows if _whole(row))


def _whole(row: dict[str, str]) -> bool:
    sizes = row["kmin_bytes"].isdigit() and row["kmax_bytes"].isdigit()
    ramp = bool(_PERCENT.fullmatch(row["pmax_percent"])) or row["kmin_bytes"] == row["kmax_bytes"]
    return sizes and ramp and not row["context"].startswith("per ")  # "per 10 Gb/s" is a rule, not a size


_PERCENT = re.compile(r"\d+(\.\d+)?")
_SPEED = re.compile(r"\b(\d+)GE?(?:-(\d+)GE?)?\b")
"""100G, 25GE, 25G-100G."""
_SPEEDS = (10, 25, 40, 50, 100, 200, 400, 800, 1600)


def _row(row: dict[str, str]) -> Published:
    pmax = row["pmax_percent"]
    return Published(
        source=row["source"],
        context=row["context"],
        speeds_gbps=_speeds(row["context"]),
        kmin=int(row["kmin_bytes"]),
        kmax=int(row["kmax_bytes"]),
        pmax=float(pmax) if _PERCENT.fullmatch(pmax) else 100.0,
        url=row["source_url"],
    )


def _speeds(context: str) -> tuple[int, ...]:
    """Port speeds that a context names; names of hardware that hold a speed ("400G SKUs") are none."""
    found: set[int] = set()
    for part in context.split(";"):
        for low, high in () if "SKUs" in part else _SPEED.findall(part):
            found |= {one for one in _SPEEDS if int(low) <= one <= int(high or low)}
    return tuple(sorted(found))


@cache
def names() -> tuple[str, ...]:
    """The names that `profile:` accepts: sources, with as much of their context as tells rows apart."""
    return tuple(sorted({_name(row) for row in published()}))


def _name(row: Published) -> str:
    parts = [row.source, *row.context.split("; ")]
    names = ["; ".join(parts[:count]) for count in range(1, len(parts) + 1)]
    speed = row.speeds_gbps[0] if row.speeds_gbps else 0
    return next((name for name in names if find(name, speed) is row), names[-1])


def find(name: str, speed_gbps: int) -> Published | None:
    """The ramp of that name for ports of that speed; a row without speeds serves every speed.

    None when there is none, and when several rows fit: the name must say which is meant.
    """
    rows = [row for row in published() if f"{row.source}; {row.context};".startswith(f"{name};")]
    exact = [row for row in rows if speed_gbps in row.speeds_gbps]
    found = exact or [row for row in rows if not row.speeds_gbps]
    return found[0] if len(found) == 1 else None
