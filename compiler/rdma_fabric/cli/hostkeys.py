"""`fabric hostkeys`: the keys that nodes present, recorded in DIR/known_hosts after a yes."""

from __future__ import annotations

import argparse

from rdma_fabric.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric hostkeys`."""
    common.folder_options(parser)
    common.limit_option(parser)
    common.device_options(parser)
    parser.add_argument(
        "--yes", "-y", action="store_true", help="record without asking (compare the fingerprints yourself!)"
    )


def run(options: argparse.Namespace) -> int:
    """0 recorded or nothing new, 1 not recorded or a node unreachable, 2 nothing reachable."""
    from rdma_fabric.cli import live, pushing
    from rdma_fabric.transport import hostkeys

    out = common.output(options)
    folder = common.directory(options)
    resolved = common.load(folder)
    names = common.scope(resolved, options.limit)
    addresses, _ = live.reachable(options, resolved, names)
    found = hostkeys.scan(addresses, workers=options.workers)
    new = []
    for one in found:
        out.data(f"{one.name:<16} {one.text}")
        if one.new:
            new.append(one)
    failed = [one for one in found if one.failed]
    if len(failed) == len(found):
        return 2
    if not new:
        return 1 if failed else 0
    if not pushing.agreed(options, f"record {len(new)} keys in {folder / 'known_hosts'}?", out):
        return 1
    hostkeys.record(folder / "known_hosts", new)
    out.say(f"{len(new)} keys recorded")
    return 1 if failed else 0
