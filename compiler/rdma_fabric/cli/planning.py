"""The way from the options to a plan, shared by diff, apply, drift and rollback."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.checker import Judged, Report
    from rdma_fabric.plan.changes import Ask, Plan, Target
    from rdma_fabric.plan.disturb import Budget
    from rdma_fabric.plan.scope import Scope
    from rdma_fabric.resolve import Resolved
    from rdma_fabric.state import Observation
    from rdma_fabric.transport.errors import Failure
    from rdma_fabric.views.output import Output


@dataclass(frozen=True, slots=True)
class Work:
    """The fabric, its verdict, the nodes in scope and what was read of them."""

    resolved: Resolved
    judged: Judged
    report: Report
    scope: Scope
    observations: Mapping[str, Observation]
    failures: Mapping[str, Failure]
    inputs: str


def push_options(parser: argparse.ArgumentParser) -> None:
    """Options of everything that plans a push."""
    parser.add_argument(
        "--allow",
        choices=("loss", "port-bounce", "driver-reload", "reboot"),
        help="what may be disturbed on nodes with workload (default: nothing)",
    )
    parser.add_argument(
        "--assume-drained",
        metavar="NODES",
        default="",
        help="these nodes carry no workload now (names, globs, facts)",
    )
    parser.add_argument(
        "--include",
        action="append",
        default=[],
        choices=("maintenance", "retired"),
        metavar="STATE",
        help="take nodes of this state along (maintenance, retired)",
    )
    parser.add_argument(
        "--accept-unverified", action="store_true", help="also send lines that no vendor source confirms"
    )


def look(options: argparse.Namespace, out: Output) -> Work:
    """Load, check, observe the scope."""
    from rdma_fabric.cli import live
    from rdma_fabric.plan.applied import inputs_digest

    folder = common.directory(options)
    resolved = common.load(folder, common.what_ifs(options) if hasattr(options, "sets") else ())
    judged, report, scope = scoped(options, resolved)
    seen, failed = live.observe(options, resolved, scope.names, out)
    _tell_notes(seen, out)
    words = [*getattr(options, "sets", ()), *getattr(options, "unsets", ())]
    return Work(resolved, judged, report, scope, seen, failed, inputs_digest(folder, words))


def scoped(options: argparse.Namespace, resolved: Resolved) -> tuple[Judged, Report, Scope]:
    """The verdict on the intent, and what the nodes in scope are to have."""
    from rdma_fabric.checker import build, check
    from rdma_fabric.plan.applied import read_applied
    from rdma_fabric.plan.scope import make_scope
    from rdma_fabric.state_dir import state_dir

    names = common.scope(resolved, options.limit)
    judged = build(resolved)
    report = check(judged)
    applied = read_applied(state_dir(common.directory(options)) / _applied(options), names)
    scope = make_scope(judged, report, names, include=getattr(options, "include", ()), applied=applied)
    return judged, report, scope


def _tell_notes(seen: Mapping[str, Observation], out: Output) -> None:
    """What devices hold that the intent has no word for and an operator should know; equal notes once."""
    from rdma_fabric.inventory.ranges import collapse

    names: dict[str, list[str]] = {}
    for name, one in seen.items():
        for note in one.notes:
            names.setdefault(note, []).append(name)
    for note, nodes in names.items():
        out.say(f"note: {collapse(nodes)}: {note}")


def look_at(
    options: argparse.Namespace, resolved: Resolved, targets: Mapping[str, Target], out: Output
) -> Work:
    """As `look`, for nodes whose targets are known already (rollback)."""
    from rdma_fabric.checker import build, check
    from rdma_fabric.cli import live
    from rdma_fabric.plan.applied import inputs_digest
    from rdma_fabric.plan.scope import Scope

    judged = build(resolved)
    seen, failed = live.observe(options, resolved, tuple(targets), out)
    inputs = inputs_digest(common.directory(options))
    return Work(resolved, judged, check(judged), Scope(targets, ()), seen, failed, inputs)


def _applied(options: argparse.Namespace) -> str:
    """The lab's devices are others than the real ones: their records lie apart."""
    return "lab/applied" if options.lab else "applied"


def applied_folder(options: argparse.Namespace) -> str:
    """Name below DIR/.fabric of the folder with applied records."""
    return _applied(options)


def budget(options: argparse.Namespace, resolved: Resolved) -> Budget:
    """What may be disturbed."""
    from rdma_fabric.plan.disturb import Budget
    from rdma_fabric.platforms._contract import Disturbs

    allow = Disturbs[options.allow.upper().replace("-", "_")] if options.allow else Disturbs.NOTHING
    words = options.assume_drained
    drained = common.scope(resolved, words, "--assume-drained") if words else ()
    return Budget(allow, frozenset(drained))


def plan(
    options: argparse.Namespace, work: Work, out: Output, targets: Mapping[str, Target] | None = None
) -> Plan:
    """The plan of a piece of work; `targets` replaces the intent's (rollback)."""
    from rdma_fabric.plan.changes import PlanRow, make_plan

    wanted = work.scope.targets if targets is None else targets
    lost = tuple(
        PlanRow(name, "unreachable", f"{one.kind}: {one.text}")
        for name, one in work.failures.items()
        if name in wanted
    )
    return make_plan(
        work.resolved.inventory,
        wanted,
        work.observations,
        inputs=work.inputs,
        budget=budget(options, work.resolved),
        fixed=(*(work.scope.fixed if targets is None else ()), *lost),
        accept_unverified=options.accept_unverified,
        ask=_asker(options, work, out),
    )


def _asker(options: argparse.Namespace, work: Work, out: Output) -> Ask:
    """Reads switches that --limit leaves out, where a host's change depends on them."""
    from rdma_fabric.cli import live
    from rdma_fabric.inventory.ranges import collapse
    from rdma_fabric.plan.scope import make_scope

    def ask(names: tuple[str, ...]) -> tuple[Mapping[str, Target], Mapping[str, Observation]]:
        out.say(f"hosts would mark packets otherwise: reading {collapse(names)} too, whether they take it")
        seen, _ = live.observe(options, work.resolved, names, out)
        return make_scope(work.judged, work.report, names).targets, seen

    return ask
