"""`fabric admit`: may a node take work? Reads it and its neighbours now; writes nothing."""

from __future__ import annotations

import argparse

from rdma_fabric.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric admit`."""
    parser.add_argument(
        "node", nargs="?", default="", metavar="NODE", help="names or globs, with commas between them"
    )
    common.folder_options(parser)
    common.format_option(parser)
    common.limit_option(parser)
    common.device_options(parser)
    parser.add_argument("--strict", action="store_true", help="every warning refuses")


def run(options: argparse.Namespace) -> int:
    """0 all admitted, 1 one is refused, 2 one could not be judged (and none is refused) or bad input."""
    from rdma_fabric.admit import around, judge
    from rdma_fabric.cli import live
    from rdma_fabric.views.admit_text import admit_json, admit_text

    out = common.output(options)
    if options.node and options.limit:  # then the only word is the folder
        options.node, options.dir = "", options.dir or options.node
    if not (options.node or options.limit):
        out.complain("fabric admit: name a node, or give --limit")
        return 2
    resolved = common.load(common.directory(options))
    names = common.scope(resolved, options.node or options.limit, "NODE" if options.node else "--limit")
    cables = around(resolved.inventory, names)
    reading = dict.fromkeys([*names, *(end.node for ends in cables.values() for end in ends.values())])
    seen, failed = live.observe(options, resolved, tuple(reading), out)
    failures = {name: f"{one.kind}: {one.text}" for name, one in failed.items()}
    verdicts = judge(resolved, cables, seen, failures, strict=options.strict)
    out.data(admit_json(verdicts) if options.format == "json" else admit_text(verdicts, out))
    words = {one.word for one in verdicts}
    return 1 if "refuse" in words else 2 if "unknown" in words else 0
