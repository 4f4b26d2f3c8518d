"""`fabric diff`: what apply would do; or what a pull request means."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.checker import Judged, Report
    from rdma_fabric.findings import Finding
    from rdma_fabric.plan.base import BaseChange
    from rdma_fabric.plan.preview import Preview
    from rdma_fabric.resolve import Resolved
    from rdma_fabric.views.output import Output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric diff`."""
    from rdma_fabric.cli import planning

    common.folder_options(parser)
    common.format_option(parser, "markdown")
    common.limit_option(parser)
    common.set_options(parser)
    common.device_options(parser)
    planning.push_options(parser)
    parser.add_argument(
        "--base", metavar="REV", help="compare with the intent of a git revision; asks no device"
    )
    parser.add_argument(
        "--compiled",
        metavar="PATH",
        help="with --base: where the repository keeps what `compile` wrote; text that changed though no "
        "setting did (templates, another version of fabric) is shown too",
    )
    parser.add_argument(
        "--stage", action="store_true", help="load into the devices' candidates, show their own diff, discard"
    )
    parser.add_argument("--exit-code", action="store_true", help="1 when something differs")
    parser.add_argument("-o", "--out", metavar="FILE", help="write the plan for `apply --plan FILE`")


def run(options: argparse.Namespace) -> int:
    """0 ran (with --exit-code 1 on differences); --base also 1 for findings of severity error."""
    if options.base:
        return _base(options)
    for name, wanted in (
        ("--compiled", options.compiled),
        ("--format markdown", options.format == "markdown"),
    ):
        if wanted:
            from rdma_fabric.findings import InputError, Position, input_finding

            help = "add --base REV"
            raise InputError([input_finding("reference", "belongs to --base", Position(name, 0, 0), help)])
    return _devices(options)


def _devices(options: argparse.Namespace) -> int:
    from rdma_fabric.cli import planning, pushing
    from rdma_fabric.plan.file import dump_plan
    from rdma_fabric.source import file_error
    from rdma_fabric.views.plan_json import plan_json
    from rdma_fabric.views.plan_text import plan_text

    out = common.output(options)
    work = planning.look(options, out)
    plan = planning.plan(options, work, out)
    out.data(plan_json(plan) if options.format == "json" else plan_text(plan, out))
    if options.stage and not pushing.stage(options, work, plan, out):
        return 2
    if options.out:
        try:
            Path(options.out).write_text(dump_plan(plan), encoding="utf-8")
        except OSError as error:
            raise file_error(
                options.out, error.strerror or str(error), "give a file that can be written"
            ) from None
    differs = any(row.status != "unchanged" and row.status != "skipped" for row in plan.rows)
    return 1 if options.exit_code and differs else 0


def _base(options: argparse.Namespace) -> int:
    from rdma_fabric.checker import build, check
    from rdma_fabric.findings import Severity
    from rdma_fabric.plan.base import compare
    from rdma_fabric.plan.preview import fresh, preview

    out = common.output(options)
    folder = common.directory(options)
    new = build(common.load(folder, common.what_ifs(options)))
    old = build(_old(folder, options.base))
    names = tuple(dict.fromkeys((*new.views, *old.views)))
    if options.limit:
        wanted = set(common.scope(new.resolved, options.limit))
        names = tuple(name for name in names if name in wanted)
    changes = compare(old, new, names)
    looked = preview(old, new, changes)
    if options.compiled:
        changes, looked = _rendered(options, new, changes, looked)
    report = check(new)
    news = fresh(report.findings, check(old).findings)
    _show_base(options, out, new, changes, looked, report, news)
    if any(one.severity is Severity.ERROR and not one.waived for one in report.findings):
        return 1
    return 1 if options.exit_code and changes else 0


def _rendered(
    options: argparse.Namespace, new: Judged, changes: tuple[BaseChange, ...], looked: Preview
) -> tuple[tuple[BaseChange, ...], Preview]:
    from rdma_fabric.plan.base import committed
    from rdma_fabric.plan.preview import rendered

    folder = common.directory(options)
    more, tool = rendered(
        new, lambda path: committed(folder, options.base, f"{options.compiled}/{path}"), changes
    )
    return (*changes, *more), replace(looked, tool=tool)


def _show_base(
    options: argparse.Namespace,
    out: Output,
    new: Judged,
    changes: tuple[BaseChange, ...],
    looked: Preview,
    report: Report,
    news: frozenset[Finding],
) -> None:
    if options.format == "json":
        from rdma_fabric.views.plan_json import base_json

        out.data(base_json(changes, options.base, report.findings, looked, news))
    elif options.format == "markdown":
        from rdma_fabric.views.base_markdown import base_markdown

        source = common.source(common.directory(options))
        name = new.resolved.intent.name
        out.data(base_markdown(changes, options.base, looked, report.findings, news, source, name))
    else:
        from rdma_fabric.findings import Severity
        from rdma_fabric.views.findings_text import findings_text
        from rdma_fabric.views.plan_text import base_text

        out.data(base_text(changes, options.base, looked, out))
        shown = [one for one in report.findings if one.severity is Severity.ERROR or one in news]
        shown = [one for one in shown if one.severity is not Severity.NOTE and not one.waived]
        if shown:
            out.data("\n" + findings_text(shown, out))


def _old(folder: Path, revision: str) -> Resolved:
    """The fabric as it was in a git revision; findings name the revision, not the folder of the moment."""
    from rdma_fabric.findings import InputError
    from rdma_fabric.plan.base import export

    with tempfile.TemporaryDirectory() as temporary:
        export(folder, revision, Path(temporary))
        try:
            return common.load(Path(temporary))
        except InputError as error:
            raise InputError(_renamed(one, temporary, revision) for one in error.findings) from None


def _renamed(one: Finding, temporary: str, revision: str) -> Finding:
    if one.position is None:
        return one
    file = one.position.file.replace(f"{temporary}/", f"{revision}:")
    return replace(
        one, position=replace(one.position, file=file), message=one.message.replace(f"{temporary}/", "")
    )
