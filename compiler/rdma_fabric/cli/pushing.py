"""Carrying a plan out: lock, recovery of runs that died, journal, rows; shared by apply and rollback."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from pathlib import Path

    from rdma_fabric.cli.planning import Work
    from rdma_fabric.plan.changes import Plan, Target
    from rdma_fabric.push.journal import RunRecord
    from rdma_fabric.push.nodes import NodeReach
    from rdma_fabric.push.rows import Row
    from rdma_fabric.resolve import Resolved
    from rdma_fabric.views.output import Output


class Told:
    """Progress on stderr."""

    def __init__(self, out: Output) -> None:
        self.out = out

    def wave(self, number: int, total: int, nodes: tuple[str, ...]) -> None:
        """A wave begins."""
        from rdma_fabric.views.plan_text import names_text

        self.out.say(f"wave {number} of {total}: {names_text(nodes)}")

    def node(self, name: str, step: str, detail: str = "") -> None:
        """A node is done."""
        if self.out.verbose or step not in ("applied", "applied-config-only", "unchanged"):
            self.out.say(f"  {name}: {step}{f': {detail}' if detail else ''}")


def locked(options: argparse.Namespace, run: str, step: Callable[[Path], int]) -> int:
    """Runs `step` under the local lock; 2 when another run holds it."""
    from rdma_fabric.push.locks import Held, local_lock
    from rdma_fabric.state_dir import state_dir

    state = state_dir(common.directory(options))
    try:
        with local_lock(state, run):
            return step(state)
    except Held as held:
        common.output(options).complain(f"fabric: {held}")
        return 2


def reach(options: argparse.Namespace, resolved: Resolved, state: Path) -> NodeReach:
    """The way to all nodes of the inventory."""
    from rdma_fabric.push.nodes import NodeReach
    from rdma_fabric.transport.credentials import Secrets
    from rdma_fabric.transport.targets import targets

    folder = common.directory(options)
    addresses = targets(resolved.inventory, tuple(resolved.inventory.nodes), folder, options.lab)
    return NodeReach(addresses, Secrets(), state, options.workers)


def recover(
    options: argparse.Namespace, resolved: Resolved, state: Path, run: str, out: Output
) -> tuple[str, ...]:
    """Drops what runs that died left on nodes; returns the nodes where that failed, with the reason."""
    from rdma_fabric.push.recover import recover_runs
    from rdma_fabric.push.runs import unfinished

    died = [one for one in unfinished(state) if one.lab == options.lab]
    if not died:
        return ()
    for one in died:
        how = "could not clean up" if one.ended else "died"
        out.say(f"run {one.run} {how}; dropping what it left on its nodes")
    return recover_runs(died, resolved, reach(options, resolved, state), state, run)


def interrupted_elsewhere(died: tuple[RunRecord, ...], inputs: str) -> str:
    """Why a run that died may not be resumed by an apply; "" when it may."""
    for one in died:
        if not one.ended and one.inputs != inputs and any(node.open for node in one.nodes.values()):
            return (
                f"run {one.run} was interrupted while it applied another intent than this one; "
                f"`fabric rollback {one.run}` undoes it, or go back to that intent and apply again"
            )
    return ""


def agreed(options: argparse.Namespace, question: str, out: Output) -> bool:
    """The operator's yes; --yes answers, and without a terminal nothing does."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        out.complain("no terminal to ask on; --yes says yes")
        return False
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def push(
    options: argparse.Namespace,
    work: Work,
    plan: Plan,
    targets: Mapping[str, Target],
    run: str,
    state: Path,
    *,
    kind: str = "apply",
    undoes: str = "",
) -> tuple[Row, ...]:
    """Carries the plan out and records what was proved."""
    from rdma_fabric.cli import planning
    from rdma_fabric.plan.applied import write_applied
    from rdma_fabric.push.run import Push, RunSettings
    from rdma_fabric.push.runs import open_journal

    out = common.output(options)
    timer = options.timer or round(work.resolved.intent.rollout.timer.seconds)
    settings = RunSettings(run, timer, kind, undoes, options.lab)
    journal = open_journal(state, run)
    way = reach(options, work.resolved, state)
    runner = Push(plan, targets, work.observations, way, journal, settings, Told(out))
    try:
        rows = runner.execute()
    finally:
        journal.close()
        done = {
            name: row
            for name, row in runner.rows.items()
            if row.status in ("unchanged", "applied", "applied-config-only")
        }
        if kind == "apply":
            states = {name: targets[name].wanted for name in done if name in targets}
            write_applied(state / planning.applied_folder(options), run, states)
    return rows


def stage(options: argparse.Namespace, work: Work, plan: Plan, out: Output) -> bool:
    """Loads the plan's candidates, shows the devices' own diffs, discards everything.

    False when another run holds the lock.
    """
    from rdma_fabric.push.locks import Held, local_lock
    from rdma_fabric.push.runs import new_run
    from rdma_fabric.state_dir import state_dir

    state = state_dir(common.directory(options))
    run = new_run(state)
    try:
        with local_lock(state, run):
            found = reach(options, work.resolved, state).stage(plan, work.scope.targets, run)
    except Held as held:
        out.complain(f"fabric: {held}")
        return False
    for name, outcome in found.items():
        if outcome.ok:
            out.data(f"{name}: the device accepts the change; its own diff:")
            out.data(outcome.kept.get("diff", "").strip() or "(the device shows none)")
        else:
            out.data(f"{name}: {outcome.where}: {outcome.text}")
    return True
