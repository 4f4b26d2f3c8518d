"""`fabric apply`: check, observe, plan, ask, push wave by wave, read back, confirm, save."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.cli.planning import Work
    from rdma_fabric.plan.changes import Plan
    from rdma_fabric.views.output import Output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric apply`."""
    from rdma_fabric.cli import planning

    common.folder_options(parser)
    common.format_option(parser)
    common.limit_option(parser)
    common.device_options(parser)
    planning.push_options(parser)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="stop after the plan")
    parser.add_argument(
        "--plan", metavar="FILE", help="carry out exactly this plan (diff -o); a stale one is refused"
    )
    parser.add_argument(
        "--timer", type=common.positive, metavar="SECONDS", help="commit timer (default: rollout.timer, 300)"
    )


def run(options: argparse.Namespace) -> int:
    """0 every node in scope is at the intent, 1 not every, 2 could not start."""
    from rdma_fabric.cli import pushing
    from rdma_fabric.push.runs import new_run
    from rdma_fabric.state_dir import state_dir

    name = new_run(state_dir(common.directory(options)))
    return pushing.locked(options, name, lambda state: _apply(options, name, state))


def _apply(options: argparse.Namespace, run: str, state: Path) -> int:
    from rdma_fabric.cli import planning, pushing
    from rdma_fabric.plan.applied import inputs_digest
    from rdma_fabric.push.run import fixed_row
    from rdma_fabric.push.runs import unfinished
    from rdma_fabric.views.output import count
    from rdma_fabric.views.plan_json import plan_json, rows_json
    from rdma_fabric.views.plan_text import plan_text, rows_text

    out = common.output(options)
    folder = common.directory(options)
    resolved = common.load(folder)
    died = tuple(one for one in unfinished(state) if one.lab == options.lab)
    why = pushing.interrupted_elsewhere(died, inputs_digest(folder))
    if why:
        out.complain(f"fabric: {why}")
        return 2
    if not options.dry_run:
        for text in pushing.recover(options, resolved, state, run, out):
            out.complain(text)
    work = planning.look(options, out)
    _complain(work, out)
    plan = planning.plan(options, work, out)
    if options.plan and not _holds(options, plan, out):
        return 2
    text = options.format == "text"
    if text:
        out.data(plan_text(plan, out))
    if options.dry_run:
        if not text:
            out.data(plan_json(plan))
        return 0 if all(row.status == "change" or fixed_row(row).good for row in plan.rows) else 1
    if not plan.empty and not pushing.agreed(options, f"push {count(len(plan.waves), 'wave')}?", out):
        out.complain("nothing was changed")
        return 1
    if plan.empty:
        rows = tuple(fixed_row(row) for row in plan.rows)
    else:
        rows = pushing.push(options, work, plan, work.scope.targets, run, state)
    out.data(rows_text(rows, out) if text else rows_json(run, rows))
    if not plan.empty:
        out.say(f"run {run}; `fabric rollback {run}` undoes it")
    return 0 if all(row.good for row in rows) else 1


def _complain(work: Work, out: Output) -> None:
    """Errors of the intent, and what the intent does not own any more."""
    from rdma_fabric.findings import Severity
    from rdma_fabric.views.findings_text import findings_text

    errors = [one for one in work.report.findings if one.severity is Severity.ERROR and not one.waived]
    if errors:
        out.complain(findings_text(errors, out) + "\n")
    for one in work.scope.left:
        text = f"{one.node} {one.setting}: was {one.value}, is not in the intent any more and stays as it is"
        out.say(text)


def _holds(options: argparse.Namespace, plan: Plan, out: Output) -> bool:
    from rdma_fabric.plan.file import load_plan, stale
    from rdma_fabric.source import file_error

    try:
        text = Path(options.plan).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "") or "is not UTF-8"
        raise file_error(options.plan, reason, "give a file that `fabric diff -o` wrote") from None
    reasons = stale(load_plan(text, options.plan), plan)
    for reason in reasons:
        out.complain(f"{options.plan}: {reason}")
    if reasons:
        out.complain("the plan is stale and was not carried out; write a new one with `fabric diff -o`")
    return not reasons
