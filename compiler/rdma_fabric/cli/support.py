"""`fabric support`: one archive about a run, for a bug report."""

from __future__ import annotations

import argparse
from pathlib import Path

from rdma_fabric.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Words and options of `fabric support`."""
    parser.add_argument("run", metavar="RUN", nargs="?", default="", help="the run (default: the newest)")
    parser.add_argument("-C", dest="chdir", metavar="DIR", help="folder that holds fabric.yaml (default: .)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("-v", "--verbose", action="store_true", help="more detail")
    parser.add_argument("--no-color", action="store_true", help="plain text also on a terminal")
    parser.add_argument(
        "-o", "--out", metavar="FILE", help="the archive (default: fabric-support-RUN.tar.gz)"
    )


def run(options: argparse.Namespace) -> int:
    """0 written, 2 there is no such run or the archive cannot be written."""
    from rdma_fabric.capture.support import support
    from rdma_fabric.findings import InputError, Position, input_finding
    from rdma_fabric.push.runs import all_runs, find_run
    from rdma_fabric.state_dir import state_dir
    from rdma_fabric.transport.credentials import Secrets, scrub

    options.dir = None
    out = common.output(options)
    folder = common.directory(options)
    state = state_dir(folder)
    runs = all_runs(state)
    record = find_run(state, options.run) if options.run else (runs[-1] if runs else None)
    if record is None:
        at = Position(f"support {options.run}".strip(), 0, 0)
        help = "`fabric runs` lists them"
        raise InputError([input_finding("reference", "there is no such run here", at, help)])
    secrets = Secrets()
    target = Path(options.out or f"fabric-support-{record.run}.tar.gz")
    names = support(folder, state, record, target, lambda text: scrub(text, secrets))
    out.data("\n".join(names))
    out.say(
        f"written to {target}: secrets are masked, node names and addresses are in it; "
        "look at it before you send it"
    )
    return 0
