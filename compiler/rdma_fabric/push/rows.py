"""What became of every node in scope: one row each, none missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Status = Literal[
    "unchanged",
    "applied",
    "applied-config-only",
    "rolled-back",
    "failed",
    "unknown",
    "unreachable",
    "pending-reset",
    "rejected",
    "skipped",
]

GOOD: Final = frozenset({"unchanged", "applied", "applied-config-only"})


@dataclass(frozen=True, slots=True)
class Row:
    """One node. `by_state`: skipped since the inventory says maintenance or retired, which is no failure."""

    node: str
    status: Status
    detail: str = ""
    wave: int = 0
    settings: tuple[tuple[str, str, str], ...] = ()
    """(setting, found, wanted) of what was or would have been changed."""
    by_state: bool = False

    @property
    def good(self) -> bool:
        """True when the node is where it should be, or deliberately left alone."""
        return self.status in GOOD or (self.status == "skipped" and self.by_state)
