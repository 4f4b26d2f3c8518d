"""A push: waves in order, the journal before every step, read-back before every confirm, stop and hold.

A wave is committed on all its nodes (each under its device's own timer where it has one), judged, and
then confirmed. A node that does not show the wanted state is undone; when any node of a wave failed, the
rest of the plan is not started and what was proved before stays.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rdma_fabric import platforms
from rdma_fabric.codec import to_json
from rdma_fabric.hardware import Hardware
from rdma_fabric.plan.changes import AFTER_RESET, Plan, PlanRow, Target
from rdma_fabric.push.journal import Journal
from rdma_fabric.push.reach import Job, Outcome, Reach
from rdma_fabric.push.rows import Row, Status
from rdma_fabric.settings import deviations
from rdma_fabric.state import (
    NodeState,
    Observation,
    differences,
    forget_unknown,
    owned_part,
    settled,
    waiting,
)


class Progress(Protocol):
    """Told what happens; views implement it."""

    def wave(self, number: int, total: int, nodes: tuple[str, ...]) -> None:
        """A wave begins."""

    def node(self, name: str, step: str, detail: str = "") -> None:
        """A node reached a step."""


def now() -> str:
    """UTC, for journals; fine enough to order two runs that a script starts one after the other."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a run is told; seconds."""

    run: str
    timer_s: int = 300
    kind: str = "apply"
    undoes: str = ""
    lab: bool = False


@dataclass
class Push:
    """One run over a plan."""

    plan: Plan
    targets: Mapping[str, Target]
    observations: Mapping[str, Observation]
    reach: Reach
    journal: Journal
    settings: RunSettings
    progress: Progress
    clock: Callable[[], str] = now
    rows: dict[str, Row] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    """Nodes on which something of this run may still be: the next run drops it."""

    def execute(self) -> tuple[Row, ...]:
        """Carries the plan out; one row per row of the plan, in its order."""
        self._start()
        try:
            self._waves()
        except KeyboardInterrupt:
            self.journal.append([{"event": "interrupted", "at": self.clock()}])
            raise
        self.journal.append([{"event": "end", "at": self.clock()}])
        return tuple(self.rows[row.node] for row in self.plan.rows)

    # -- journal

    def _start(self) -> None:
        events: list[dict[str, Any]] = [
            {
                "event": "start",
                "version": 1,
                "at": self.clock(),
                "run": self.settings.run,
                "kind": self.settings.kind,
                "inputs": self.plan.inputs,
                "undoes": self.settings.undoes,
                "lab": self.settings.lab,
            }
        ]
        for row in self.plan.rows:
            if row.status != "change":
                self.rows[row.node] = fixed_row(row)
                events.append(self._done(self.rows[row.node]))
            else:
                events.append({"event": "node", "node": row.node, "phase": "planned", "wave": row.wave})
        self.journal.append(events)

    def _done(self, row: Row) -> dict[str, Any]:
        found = {"left": True} if row.node in self.left else {}
        return found | {
            "event": "node",
            "node": row.node,
            "phase": "done",
            "status": row.status,
            "detail": row.detail,
            "wave": row.wave,
            "settings": [list(one) for one in row.settings],
        }

    def _phase(self, names: Iterable[str], phase: str) -> None:
        self.journal.append(
            [{"event": "node", "node": name, "phase": phase, "at": self.clock()} for name in names]
        )

    def _plays(self, committed: Mapping[str, Outcome]) -> None:
        """Every Ansible run, by its own count of hosts and changes."""
        plays = {id(one.play): one.play for one in committed.values() if one.play is not None}
        if plays:
            self.journal.append(
                [
                    {"event": "ansible", "at": self.clock(), "hosts": one.hosts, "changed": one.changed}
                    for one in plays.values()
                ]
            )

    def _finish(self, name: str, status: Status, detail: str = "") -> None:
        row = self.plan.row(name)
        assert row is not None
        self.rows[name] = Row(name, status, detail, row.wave, changed_settings(row))
        self.progress.node(name, status, detail)

    # -- waves

    def _waves(self) -> None:
        total = len(self.plan.waves)
        stopped = ""
        for number, names in enumerate(self.plan.waves, 1):
            if stopped:
                for name in names:
                    self._finish(name, "skipped", f"not started: {stopped}")
                self.journal.append([self._done(self.rows[name]) for name in names])
                continue
            self.progress.wave(number, total, names)
            self._wave(names)
            failed = [name for name in names if not (self.rows[name].good or self._written(name))]
            if failed:
                stopped = f"wave {number} failed on {', '.join(failed[:4])}"

    def _wave(self, names: tuple[str, ...]) -> None:
        jobs = {name: self._job(name) for name in names}
        self.journal.append([self._before(name) for name in names])
        committed = self.reach.commit(jobs, self.settings.run, self.settings.timer_s)
        self._plays(committed)
        self._phase([name for name in names if not committed[name].untouched], "committed")
        good = {name: jobs[name] for name in names if self._proved(name, committed[name])}
        bad = {name: jobs[name] for name in names if name not in good}
        self._undo(bad, committed)
        self._confirm(good, committed)
        self.journal.append([self._done(self.rows[name]) for name in names])

    def _written(self, name: str) -> bool:
        """True when all that can be done now is done: no reason to hold others back."""
        return self.rows[name].status == "pending-reset"

    def _job(self, name: str) -> Job:
        row = self.plan.row(name)
        assert row is not None and row.change is not None
        hw = self.targets[name].hardware
        dialect = platforms.platform(hw.base).dialect
        before = owned_part(self.observations[name].running, self.targets[name].wanted)
        seen = self.plan.seen.get(name, "")
        return Job(name, row.change, hw, dialect, row.channel, seen, forget_unknown(before))

    def _before(self, name: str) -> dict[str, Any]:
        """The own settings as they were: what `rollback` brings back. Written before anything is sent."""
        target = self.targets[name]
        row = self.plan.row(name)
        assert row is not None
        return {
            "event": "node",
            "node": name,
            "phase": "committing",
            "at": self.clock(),
            "before": to_json(owned_part(self.observations[name].running, target.wanted)),
            "wanted": to_json(target.wanted),
            "settings": [list(one) for one in changed_settings(row)],
            "wave": row.wave,
        }

    def _proved(self, name: str, outcome: Outcome) -> bool:
        """True when the read-back shows the wanted state."""
        return outcome.ok and not self._missing(name, outcome)

    def _missing(self, name: str, outcome: Outcome) -> str:
        """What the read-back does not show, as text; "" when all is as wanted."""
        row = self.plan.row(name)
        assert row is not None and row.change is not None
        if outcome.observation is None:
            return "the node could not be read back"
        wanted = settled(self.targets[name].wanted)
        left_out = {one.path for one in row.change.blocked} | waiting(wanted, outcome.observation)
        left = [one for one in differences(wanted, outcome.observation.running) if one.path not in left_out]
        found = deviations(left, wanted, outcome.observation.running)
        parts = [f"{one.setting}: found {one.found}, wanted {one.wanted}" for one in found[:3]]
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        return "; ".join(parts) + more

    def _undo(self, jobs: Mapping[str, Job], committed: Mapping[str, Outcome]) -> None:
        for name in jobs:
            if committed[name].untouched:
                status: Status = "unreachable" if committed[name].where == "connect" else "failed"
                self._finish(name, status, committed[name].text)
        touched = {name: job for name, job in jobs.items() if not committed[name].untouched}
        if not touched:
            return
        self._phase(touched, "undoing")
        undone = self.reach.undo(touched, self.settings.run)
        for name in touched:
            first = committed[name]
            why = (
                f"{first.where}: {first.text}" if not first.ok else f"read-back: {self._missing(name, first)}"
            )
            if undone[name].ok:
                self._finish(name, "rolled-back", why)
            else:
                self._finish(name, "failed", f"{why}; the undo failed too: {undone[name].text}")
                self.left.add(name)

    def _confirm(self, jobs: Mapping[str, Job], committed: Mapping[str, Outcome]) -> None:
        if not jobs:
            return
        self._phase(jobs, "confirming")
        confirmed = self.reach.confirm(jobs, self.settings.run)
        for name in jobs:
            outcome, seen = confirmed[name], committed[name].observation
            row = self.plan.row(name)
            assert row is not None and row.change is not None
            if not outcome.ok:
                self._finish(
                    name, "rolled-back" if outcome.clean else "failed", f"{outcome.where}: {outcome.text}"
                )
                if not outcome.clean and outcome.where != "save":
                    self.left.add(name)
            elif row.change.blocked:
                self._finish(name, "unknown", row.reason)
            elif committed[name].pending_reset or (seen and waiting(self.targets[name].wanted, seen)):
                self._finish(name, "pending-reset", AFTER_RESET)
            elif seen is not None and not seen.operational:
                self._finish(name, "applied-config-only", "the device shows configuration only")
            else:
                self._finish(name, "applied")


def changed_settings(row: PlanRow) -> tuple[tuple[str, str, str], ...]:
    """(setting, found, wanted) of everything that the row's change repairs."""
    return tuple((one.setting, one.found, one.wanted) for one in row.deviations)


_FIXED: Mapping[str, Status] = {
    "unchanged": "unchanged",
    "pending-reset": "pending-reset",
    "rejected": "rejected",
    "refused": "rejected",
    "unknown": "unknown",
    "unreachable": "unreachable",
    "skipped": "skipped",
    "not-planned": "skipped",
}


def fixed_row(row: PlanRow) -> Row:
    """The row of a node that is not pushed."""
    return Row(
        row.node, _FIXED[row.status], row.reason, 0, changed_settings(row), by_state=row.status == "skipped"
    )


__all__ = ["Hardware", "NodeState", "Progress", "Push", "RunSettings", "changed_settings", "fixed_row", "now"]
