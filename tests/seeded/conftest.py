"""The table of seeded faults at the end of a run: kind, found of variants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.seeded import faults
from tests.seeded.judge import Base

RECALL = "seeded"


@pytest.fixture(scope="session")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Base]:
    """The sound fabrics that are broken, each read once."""
    folder: Path = tmp_path_factory.mktemp("bases")
    return {name: Base(fabric, folder / name) for name, fabric in faults.bases().items()}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One row per kind; nothing where no seeded test ran."""
    rows: dict[str, list[int]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, (kind, found, variants) in getattr(report, "user_properties", ()):
                if name == RECALL and getattr(report, "when", "") == "call":
                    row = rows.setdefault(kind, [0, 0])
                    row[0] += found
                    row[1] += variants
    if rows:
        found, variants = (sum(row[i] for row in rows.values()) for i in (0, 1))
        terminalreporter.section("seeded faults")
        for kind, row in sorted(rows.items()):
            terminalreporter.write_line(f"{row[0]:4}/{row[1]:<4} {kind}")
        terminalreporter.write_line(f"{found:4}/{variants:<4} in all, {100 * found / variants:.1f}%")
