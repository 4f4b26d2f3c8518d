"""Tables at the end of a run: seeded faults found of variants, headroom that vendors ship."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.seeded import catalogue
from tests.seeded.judge import Base

RECALL = "seeded"
HEADROOM = "headroom"


@pytest.fixture(scope="session")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Base]:
    """The sound fabrics that are broken, each read once."""
    folder: Path = tmp_path_factory.mktemp("bases")
    return {name: Base(fabric, folder / name) for name, fabric in catalogue.bases().items()}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One row per kind of fault, one per ASIC family; nothing where no such test ran."""
    _faults(terminalreporter, list(_recorded(terminalreporter, RECALL)))
    _headroom(terminalreporter, list(_recorded(terminalreporter, HEADROOM)))


def _recorded(terminalreporter: Any, name: str) -> Iterator[Any]:
    for reports in terminalreporter.stats.values():
        for report in reports:
            for key, value in getattr(report, "user_properties", ()):
                if key == name and getattr(report, "when", "") == "call":
                    yield value


def _faults(terminalreporter: Any, recorded: list[tuple[str, int, int]]) -> None:
    rows: dict[str, list[int]] = {}
    for kind, found, variants in recorded:
        row = rows.setdefault(kind, [0, 0])
        row[0] += found
        row[1] += variants
    if rows:
        found, variants = (sum(row[i] for row in rows.values()) for i in (0, 1))
        terminalreporter.section("seeded faults")
        for kind, row in sorted(rows.items()):
            terminalreporter.write_line(f"{row[0]:4}/{row[1]:<4} {kind}")
        terminalreporter.write_line(f"{found:4}/{variants:<4} in all, {100 * found / variants:.1f}%")


def _headroom(terminalreporter: Any, rows: list[tuple[str, int, int, int, float, float, float]]) -> None:
    if rows:
        terminalreporter.section("headroom that vendors ship")
        terminalreporter.write_line(
            "family                     rows  rejected  warned  ours/shipped min median max"
        )
        for family, count, bad, low, least, middle, most in rows:
            share = f"{bad} ({100 * bad / count:.0f}%)"
            terminalreporter.write_line(
                f"{family:25} {count:5}  {share:>8}  {low:6}  {least:16.2f} {middle:6.2f} {most:4.2f}"
            )
