"""`fabric compile`: configuration of every node that has no errors, and a manifest."""

from __future__ import annotations

import argparse
from pathlib import Path

from rdma_fabric.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric compile`."""
    common.folder_options(parser)
    common.format_option(parser)
    common.limit_option(parser)
    common.set_options(parser)
    parser.add_argument(
        "-o", "--out", required=True, metavar="OUT", help="folder for OUT/<node>/... and manifest.json"
    )
    parser.add_argument(
        "--strict", action="store_true", help="all or nothing: write nothing when a node is rejected"
    )


def run(options: argparse.Namespace) -> int:
    """0 all written, 1 some rejected, 2 bad input."""
    import json

    from rdma_fabric import render
    from rdma_fabric.checker import build, check
    from rdma_fabric.findings import Severity
    from rdma_fabric.inventory.ranges import collapse
    from rdma_fabric.views.findings_text import findings_text

    out = common.output(options)
    resolved = common.load(common.directory(options), common.what_ifs(options))
    names = common.scope(resolved, options.limit)
    judged = build(resolved)
    report = check(judged)
    rejected = tuple(name for name in names if name in report.rejected)
    errors = [one for one in report.findings if one.severity is Severity.ERROR and not one.waived]
    if errors:
        out.complain(findings_text(errors, out) + "\n")
    if options.strict and rejected:
        out.complain(f"nothing written: {collapse(rejected)} rejected and --strict given")
        return 1
    compiled = render.compile_fabric(judged, [name for name in names if name not in rejected])
    done = render.write(Path(options.out), judged, compiled, rejected)
    if options.format == "json":
        data = {
            "version": 1,
            "manifest": str(done.manifest),
            "nodes": done.nodes,
            "written": done.written,
            "same": done.same,
            "removed": done.removed,
            "rejected": list(rejected),
        }
        out.data(json.dumps(data, indent=1))
    else:
        text = f"{done.nodes} nodes compiled: {done.written} files written, {done.same} unchanged"
        text += f", {done.removed} removed" if done.removed else ""
        out.data(text + (f"; rejected: {collapse(rejected)}" if rejected else ""))
    return 1 if rejected else 0
