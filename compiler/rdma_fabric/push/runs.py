"""The runs of a fabric folder: names, journals, and runs that died."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from rdma_fabric.push.journal import FILE, Journal, RunRecord, read
from rdma_fabric.push.locks import running

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_NAME = re.compile(r"[a-z0-9]{1,10}")


def new_run(state: Path) -> str:
    """A short name that no run of this folder has: 6 characters that are easy to read aloud."""
    while True:
        name = "".join(secrets.choice(_ALPHABET) for _ in range(6))
        if not (state / "runs" / name).exists():
            return name


def open_journal(state: Path, run: str) -> Journal:
    """The journal of a run, made when absent."""
    return Journal(state / "runs" / run)


def all_runs(state: Path) -> tuple[RunRecord, ...]:
    """Every run that was started, oldest first."""
    return tuple(sorted(_records(state), key=lambda record: (record.started, record.run)))


def _records(state: Path) -> Iterator[RunRecord]:
    folder = state / "runs"
    for path in folder.iterdir() if folder.is_dir() else ():
        if _NAME.fullmatch(path.name):
            record = read(path / FILE)
            if record.run == path.name:
                yield record


def find_run(state: Path, name: str) -> RunRecord | None:
    """The run of that name; of "" the newest one that wrote to a node."""
    found = all_runs(state)
    if not name:
        wrote = [one for one in found if any(node.before is not None for node in one.nodes.values())]
        return wrote[-1] if wrote else None
    return next((one for one in found if one.run == name), None)


def busy(state: Path) -> dict[str, str]:
    """Nodes in the scope of the run that is going on now -> what a report says of them."""
    run = running(state)
    record = find_run(state, run) if run else None
    return dict.fromkeys(record.nodes, f"run {run} is going on") if record and not record.ended else {}


def unfinished(state: Path) -> tuple[RunRecord, ...]:
    """Runs that died, oldest first."""
    return tuple(one for one in all_runs(state) if one.unfinished)
