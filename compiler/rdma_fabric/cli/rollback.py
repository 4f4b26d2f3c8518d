"""`fabric rollback`: own settings of a run's nodes back to what the journal recorded, as a normal plan."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.plan.changes import Target
    from rdma_fabric.push.journal import RunRecord
    from rdma_fabric.resolve import Resolved
    from rdma_fabric.views.output import Output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric rollback`."""
    from rdma_fabric.cli import planning

    parser.add_argument(
        "run", nargs="?", default="", metavar="RUN", help="which run (default: the newest that wrote)"
    )
    parser.add_argument("-C", dest="chdir", metavar="DIR", help="folder that holds fabric.yaml (default: .)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("-v", "--verbose", action="store_true", help="more detail")
    parser.add_argument("--no-color", action="store_true", help="plain text also on a terminal")
    common.format_option(parser)
    common.limit_option(parser)
    common.device_options(parser)
    planning.push_options(parser)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="stop after the plan")
    parser.add_argument(
        "--timer", type=common.positive, metavar="SECONDS", help="commit timer (default: rollout.timer, 300)"
    )
    parser.set_defaults(dir=None)


def run(options: argparse.Namespace) -> int:
    """0 every node is back, 1 not every, 2 could not start."""
    from rdma_fabric.cli import pushing
    from rdma_fabric.push.runs import new_run
    from rdma_fabric.state_dir import state_dir

    # The word after `rollback` is the run; the runner's own name is new.
    wanted = options.run
    name = new_run(state_dir(common.directory(options)))
    return pushing.locked(options, name, lambda state: _rollback(options, wanted, name, state))


def _rollback(options: argparse.Namespace, wanted: str, run: str, state: Path) -> int:
    from rdma_fabric.cli import planning, pushing
    from rdma_fabric.push.run import fixed_row
    from rdma_fabric.push.runs import find_run
    from rdma_fabric.views.output import count
    from rdma_fabric.views.plan_json import plan_json, rows_json
    from rdma_fabric.views.plan_text import plan_text, rows_text

    out = common.output(options)
    record = _found(options, wanted, state, out)
    if record is None:
        return 2
    resolved = common.load(common.directory(options))
    if not options.dry_run:
        for text in pushing.recover(options, resolved, state, run, out):
            out.complain(text)
    record = find_run(state, record.run) or record
    targets = _targets(record, resolved, common.scope(resolved, options.limit))
    if not targets:
        out.complain(f"run {record.run} changed no node of the scope: nothing to bring back")
        if options.format == "json":
            out.data(rows_json(run, ()))
        return 0
    work = planning.look_at(options, resolved, targets, out)
    plan = planning.plan(options, work, out, targets)
    text = options.format == "text"
    if text:
        out.data(plan_text(plan, out))
    if options.dry_run:
        if not text:
            out.data(plan_json(plan))
        return 0
    if not plan.empty and not pushing.agreed(options, f"bring {count(len(targets), 'node')} back?", out):
        out.complain("nothing was changed")
        return 1
    if plan.empty:
        rows = tuple(fixed_row(row) for row in plan.rows)
    else:
        rows = pushing.push(options, work, plan, targets, run, state, kind="rollback", undoes=record.run)
    out.data(rows_text(rows, out) if text else rows_json(run, rows))
    return 0 if all(row.good for row in rows) else 1


def _found(options: argparse.Namespace, wanted: str, state: Path, out: Output) -> RunRecord | None:
    """The run to undo; None (and why) when there is none, or it ran elsewhere."""
    from rdma_fabric.push.runs import find_run

    record = find_run(state, wanted)
    if record is None:
        known = f"no run {wanted!r} here; `fabric runs` lists them" if wanted else "no run wrote here"
        out.complain(f"fabric: {known}")
    elif record.lab != options.lab:
        where = "on the lab" if record.lab else "not on the lab"
        out.complain(f"fabric: run {record.run} was {where}: give the same --lab")
        return None
    return record


def _targets(record: RunRecord, resolved: Resolved, names: tuple[str, ...]) -> Mapping[str, Target]:
    """Recorded states of the nodes that the run wrote to; equal ones are shared.

    What a platform never takes back (a loaded module) stays as it is.
    """
    import json

    from rdma_fabric import platforms
    from rdma_fabric.codec import from_json
    from rdma_fabric.plan.applied import restorable
    from rdma_fabric.plan.changes import Target
    from rdma_fabric.state import NodeState, forget_unknown

    shared: dict[tuple[str, int], Target] = {}
    found: dict[str, Target] = {}
    for name in names:
        node = record.nodes.get(name)
        if node is None or node.before is None or name not in resolved.plans:
            continue
        hw = resolved.plans[name].hardware
        key = (json.dumps(node.before, sort_keys=True), id(hw))
        if key not in shared:
            before = forget_unknown(from_json(NodeState, node.before))
            shared[key] = Target(restorable(before, platforms.realize(before, hw).state), hw)
        found[name] = shared[key]
    return found
