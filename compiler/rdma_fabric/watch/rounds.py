"""One round after the other: load what changed, read who is due, compare, remember.

A node that does not answer is asked again after growing waits, so that a dead rack does not hold up every
round. Inputs that do not load (somebody is editing) leave the last good ones in force.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rdma_fabric import platforms
from rdma_fabric.checker import Judged, Report, build, check
from rdma_fabric.drift import NodeDrift, find_drift
from rdma_fabric.findings import InputError
from rdma_fabric.plan.applied import inputs_digest, read_applied
from rdma_fabric.plan.scope import Scope, make_scope
from rdma_fabric.push.runs import busy
from rdma_fabric.resolve import Resolved
from rdma_fabric.state import Observation
from rdma_fabric.transport.errors import Failure
from rdma_fabric.watch.history import Event, History, Seen

JITTER: Final = 0.1
"""Share of the interval by which a round may start earlier or later: watchers do not march in step."""
LONGEST_WAIT_S: Final = 3600.0
"""A silent node is asked at least this often (or once per interval, when that is longer)."""
Reader = Callable[[Resolved, Collection[str]], Mapping[str, Observation | Failure]]
Loader = Callable[[], Resolved]


def next_wait(interval: float, chance: Callable[[], float] = random.random) -> float:
    """Seconds between two rounds: the interval, a little more or less."""
    return interval * (1.0 + JITTER * (2.0 * chance() - 1.0))


def back_off(failures: int, interval: float) -> float:
    """Seconds until a node that failed so many times in a row is asked again; the first time next round."""
    if failures < 2:
        return 0.0
    return float(min(interval * 2.0 ** min(failures - 1, 30), max(LONGEST_WAIT_S, interval)))


@dataclass(frozen=True, slots=True)
class Round:
    """What one round found."""

    rows: tuple[NodeDrift, ...]
    events: tuple[Event, ...]
    untried: tuple[str, ...]
    """Nodes that are backed off."""
    inputs: str
    """Why intent and inventory could not be read anew; "" when they were."""

    @property
    def clean(self) -> bool:
        """True when every node that counts was read by its last try and is as wanted."""
        return not any(row.counts for row in self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """What the inputs give, kept while they are the same."""

    key: tuple[str, int]
    judged: Judged
    report: Report
    scope: Scope


@dataclass
class Watcher:
    """All that outlives a round; `select` gives the names in scope of a resolved fabric."""

    folder: Path
    state: Path
    applied: Path
    history: History
    load: Loader
    select: Callable[[Resolved], Collection[str]]
    read: Reader
    clock: Callable[[], float]
    interval: float
    tell: bool = False
    """Changes are written to the outbox."""
    _work: _Work | None = field(default=None, repr=False)

    def round(self) -> Round:
        """One scan; InputError only when there never were good inputs."""
        started = self.clock()
        work, trouble = self._inputs()
        scope = work.scope
        remembered = self.history.nodes()
        moving = busy(self.state)
        asleep = {
            name: seen
            for name, seen in remembered.items()
            if name in scope.targets and seen.word == "stale" and seen.retry > started and name not in moving
        }
        due = [name for name in scope.names if name not in asleep and name not in moving]
        found = self.read(work.judged.resolved, due) if due else {}
        moving |= busy(self.state)  # a run that began meanwhile
        rows = self._rows(work, found, asleep, moving)
        now = self.clock()
        retry = {name: now + back_off(_failures(remembered, name), self.interval) for name in due}
        message = {"fabric": work.judged.resolved.intent.name} if self.tell else None
        events = self.history.record(rows, now, now - started, untried=asleep, retry=retry, message=message)
        return Round(rows, events, tuple(asleep), trouble)

    @property
    def fabric(self) -> str:
        """Name of the intent; loads it when that was not done yet."""
        return self._inputs()[0].judged.resolved.intent.name

    def _rows(
        self,
        work: _Work,
        found: Mapping[str, Observation | Failure],
        asleep: Mapping[str, Seen],
        moving: Mapping[str, str],
    ) -> tuple[NodeDrift, ...]:
        seen = {name: one for name, one in found.items() if isinstance(one, Observation)}
        failures = {
            name: f"{one.kind}: {one.text}" for name, one in found.items() if isinstance(one, Failure)
        }
        failures |= {name: one.detail for name, one in asleep.items()}
        fixed = work.scope.fixed
        failures |= {
            one.node: f"its intent has errors: {one.reason}" for one in fixed if one.status == "rejected"
        }
        skipped = {one.node: one.reason for one in fixed if one.status == "skipped"}
        inventory = work.judged.resolved.inventory
        return find_drift(inventory, work.scope.targets, seen, failures, skipped, moving)

    def _inputs(self) -> tuple[_Work, str]:
        """The last good inputs, read anew when a file changed, and what is wrong with them now."""
        key = (inputs_digest(self.folder), _newest(self.applied))
        if self._work is not None and self._work.key == key:
            return self._work, ""
        try:
            resolved = self.load()
            names = self.select(resolved)
        except InputError as error:
            if self._work is None:
                raise
            return self._work, str(error).splitlines()[0]
        platforms.forget()
        judged = build(resolved)
        report = check(judged)
        scope = make_scope(judged, report, names, applied=read_applied(self.applied, names))
        self._work = _Work(key, judged, report, scope)
        return self._work, ""


def _failures(remembered: Mapping[str, Seen], name: str) -> int:
    return remembered[name].failures + 1 if name in remembered else 1


def _newest(folder: Path) -> int:
    """Changes when a record in the folder does; nanoseconds."""
    times = [one.stat().st_mtime_ns for one in folder.iterdir()] if folder.is_dir() else []
    return max(times, default=0) + len(times)
