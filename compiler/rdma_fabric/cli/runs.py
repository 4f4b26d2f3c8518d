"""`fabric runs`: what happened, per run and per node."""

from __future__ import annotations

import argparse

from rdma_fabric.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric runs`."""
    parser.add_argument("run", nargs="?", default="", metavar="RUN", help="one run in detail")
    parser.add_argument("-C", dest="chdir", metavar="DIR", help="folder that holds fabric.yaml (default: .)")
    parser.add_argument("-q", "--quiet", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-v", "--verbose", action="store_true", help="every setting")
    parser.add_argument("--no-color", action="store_true", help="plain text also on a terminal")
    common.format_option(parser)
    parser.set_defaults(dir=None)


def run(options: argparse.Namespace) -> int:
    """0 shown, 2 no such run."""
    from rdma_fabric.push.runs import all_runs, find_run
    from rdma_fabric.source import file_error
    from rdma_fabric.state_dir import NAME
    from rdma_fabric.views.plan_json import runs_json
    from rdma_fabric.views.runs_text import run_text, runs_text

    out = common.output(options)
    folder = common.directory(options)
    if not folder.is_dir():
        raise file_error(folder, "is no folder", "give the folder that holds fabric.yaml")
    state = folder / NAME
    if not options.run:
        records = all_runs(state)
        out.data(runs_json(records) if options.format == "json" else runs_text(records))
        return 0
    record = find_run(state, options.run)
    if record is None:
        out.complain(f"fabric: no run {options.run!r} here; `fabric runs` lists them")
        return 2
    out.data(runs_json([record]) if options.format == "json" else run_text(record, out))
    return 0
