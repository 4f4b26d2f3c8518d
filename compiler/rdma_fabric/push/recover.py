"""After a crash: drop candidates, timers and locks that a run that died left on its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rdma_fabric import platforms
from rdma_fabric.platforms._contract import Change
from rdma_fabric.push.journal import RunRecord
from rdma_fabric.push.reach import Job, Reach
from rdma_fabric.push.run import now
from rdma_fabric.push.runs import open_journal
from rdma_fabric.resolve import Resolved


def recover_runs(
    died: Sequence[RunRecord], resolved: Resolved, reach: Reach, state: Path, by: str
) -> tuple[str, ...]:
    """Recovers every open node of the runs, newest run first; returns what could not be, as text.

    A run is marked recovered when all its open nodes are; else the next apply or rollback tries again.
    """
    trouble: list[str] = []
    for record in reversed(died):
        opened = [name for name, node in record.nodes.items() if node.open]
        jobs = {name: _job(name, resolved) for name in opened if name in resolved.plans}
        found = reach.recover(jobs, record.run) if jobs else {}
        failed = {name: one.text for name, one in found.items() if not one.ok}
        _write(record, [name for name in found if name not in failed], not failed, state, by)
        trouble += [
            f"{name}: run {record.run} could not be recovered there: {why}" for name, why in failed.items()
        ]
        trouble += [
            f"{name}: run {record.run} left it open, and it is not in the inventory any more"
            for name in opened
            if name not in jobs
        ]
    return tuple(trouble)


def _write(record: RunRecord, names: Sequence[str], whole: bool, state: Path, by: str) -> None:
    """Into the journal of the run that died: which nodes are recovered, and whether the run is as a whole."""
    detail = (
        f"the run {'ended' if record.ended else 'died'} here; run {by} brought the node back to before it, "
        "unless the change was confirmed already"
    )
    done = {"event": "node", "phase": "done", "status": "rolled-back", "left": False, "detail": detail}
    journal = open_journal(state, record.run)
    try:
        journal.append([{**done, "node": name} for name in names])
        if whole:
            journal.append([{"event": "recovered", "at": now(), "by": by}])
    finally:
        journal.close()


def _job(name: str, resolved: Resolved) -> Job:
    hw = resolved.plans[name].hardware
    base = platforms.platform(hw.base)
    return Job(name, Change(), hw, base.dialect, base.channel, "")
