"""`fabric capture`: raw output of a node without secrets, and what was understood of it."""

from __future__ import annotations

import argparse
from pathlib import Path

from rdma_fabric.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Words and options of `fabric capture`."""
    parser.add_argument("node", metavar="NODE", help="whose output")
    common.folder_options(parser)
    common.format_option(parser)
    common.device_options(parser)
    parser.add_argument(
        "-o", "--out", metavar="FOLDER", help="folder for answers.yaml and state.json (default: capture-NODE)"
    )


def run(options: argparse.Namespace) -> int:
    """0 written, 1 written but something was not understood, 2 the node could not be read."""
    from rdma_fabric.capture.record import capture, write
    from rdma_fabric.cli import live
    from rdma_fabric.transport.credentials import scrub
    from rdma_fabric.transport.errors import TransportError
    from rdma_fabric.views.capture_text import capture_json, capture_text

    out = common.output(options)
    resolved = common.load(common.directory(options))
    (name,) = common.scope(resolved, options.node, "NODE")[:1]
    addresses, secrets = live.reachable(options, resolved, [name])
    try:
        found = capture(addresses[name], resolved.plans[name], secrets)
    except (TransportError, KeyError) as error:
        text = error.text if isinstance(error, TransportError) else "the lab does not play it"
        out.complain(f"{name}: {scrub(text, secrets)}")
        return 2
    paths = write(Path(options.out or f"capture-{name}"), found)
    shown = [str(path) for path in paths]
    out.data(capture_json(found, shown) if options.format == "json" else capture_text(name, found, shown))
    return 1 if found.unknown or not found.same else 0
