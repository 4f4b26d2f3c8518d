"""`fabric observe`: read the devices, write their states."""

from __future__ import annotations

import argparse
from pathlib import Path

from rdma_fabric.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric observe`."""
    common.folder_options(parser)
    common.limit_option(parser)
    common.device_options(parser)
    parser.add_argument(
        "-o", "--out", required=True, metavar="FILE", help="where to write the states (JSON); - for stdout"
    )


def run(options: argparse.Namespace) -> int:
    """0 all read, 1 some not, 2 none."""
    from rdma_fabric.cli import live
    from rdma_fabric.codec import dump_observations
    from rdma_fabric.source import file_error
    from rdma_fabric.views.output import count

    out = common.output(options)
    resolved = common.load(common.directory(options))
    names = common.scope(resolved, options.limit)
    seen, failed = live.observe(options, resolved, names, out)
    for name, failure in failed.items():
        out.complain(f"{name}: {failure.kind}: {failure.text}")
    text = dump_observations({name: seen[name] for name in names if name in seen})
    if options.out == "-":
        out.data(text.rstrip("\n"))
    elif seen:
        try:
            Path(options.out).write_text(text, encoding="utf-8")
        except OSError as error:
            raise file_error(
                options.out, error.strerror or str(error), "give a file that can be written"
            ) from None
    out.say(f"{len(seen)} of {count(len(names), 'node')} read")
    if not seen:
        return 2
    return 1 if failed else 0
