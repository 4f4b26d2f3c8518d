"""`fabric diff`: what apply would do; or what a pull request means."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.findings import Finding
    from rdma_fabric.resolve import Resolved


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric diff`."""
    from rdma_fabric.cli import planning

    common.folder_options(parser)
    common.format_option(parser)
    common.limit_option(parser)
    common.set_options(parser)
    common.device_options(parser)
    planning.push_options(parser)
    parser.add_argument(
        "--base", metavar="REV", help="compare with the intent of a git revision; asks no device"
    )
    parser.add_argument(
        "--stage", action="store_true", help="load into the devices' candidates, show their own diff, discard"
    )
    parser.add_argument("--exit-code", action="store_true", help="1 when something differs")
    parser.add_argument("-o", "--out", metavar="FILE", help="write the plan for `apply --plan FILE`")


def run(options: argparse.Namespace) -> int:
    """0 ran (with --exit-code 1 on differences); --base also 1 for findings of severity error."""
    return _base(options) if options.base else _devices(options)


def _devices(options: argparse.Namespace) -> int:
    from rdma_fabric.cli import planning, pushing
    from rdma_fabric.plan.file import dump_plan
    from rdma_fabric.source import file_error
    from rdma_fabric.views.plan_json import plan_json
    from rdma_fabric.views.plan_text import plan_text

    out = common.output(options)
    work = planning.look(options, out)
    plan = planning.plan(options, work)
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
    from rdma_fabric.views.findings_text import findings_text
    from rdma_fabric.views.plan_json import base_json
    from rdma_fabric.views.plan_text import base_text

    out = common.output(options)
    folder = common.directory(options)
    new = build(common.load(folder, common.what_ifs(options)))
    old = build(_old(folder, options.base))
    names = tuple(dict.fromkeys((*new.views, *old.views)))
    if options.limit:
        wanted = set(common.scope(new.resolved, options.limit))
        names = tuple(name for name in names if name in wanted)
    changes = compare(old, new, names)
    report = check(new)
    errors = [one for one in report.findings if one.severity is Severity.ERROR and not one.waived]
    if options.format == "json":
        out.data(base_json(changes, options.base, report.findings))
    else:
        out.data(base_text(changes, options.base, out))
        if errors:
            out.data("\n" + findings_text(errors, out))
    if errors:
        return 1
    return 1 if options.exit_code and changes else 0


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
