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
        "--yes", "-y", action="store_true", help="record without asking (compare the fingerprints yourself)"
    )


def run(options: argparse.Namespace) -> int:
    """0 all known or recorded, 1 not recorded or a node not reached, 2 nothing reached."""
    from rdma_fabric.cli import live, pushing
    from rdma_fabric.transport.errors import TransportError
    from rdma_fabric.transport.hostkeys import Presented, record, scan

    out = common.output(options)
    folder = common.directory(options)
    resolved = common.load(folder)
    names = common.scope(resolved, options.limit)
    addresses, _ = live.reachable(options, resolved, names)
    found = scan(addresses, workers=options.workers)
    new: list[Presented] = []
    failed = 0
    for name, one in found.items():
        if isinstance(one, Presented):
            out.data(f"{name:<16} {one.fingerprint} {one.state}")
            new += [one] if one.state in ("unknown", "changed") else []
        else:
            out.complain(f"{name}: {one.kind}: {one.text}")
            failed += 1
    if failed == len(found):
        return 2
    path = folder / "known_hosts"
    if new:
        if not pushing.agreed(options, f"record {len(new)} keys in {path}?", out):
            return 1
        try:
            record(path, new)
        except TransportError as error:
            out.complain(f"fabric: {error}")
            return 2
        out.say(f"{len(new)} keys recorded in {path}")
    return 1 if failed else 0
