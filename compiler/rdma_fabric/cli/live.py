"""Reading devices for several commands."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from rdma_fabric.resolve import Resolved
    from rdma_fabric.state import Observation
    from rdma_fabric.transport.credentials import Secrets
    from rdma_fabric.transport.errors import Failure
    from rdma_fabric.transport.targets import Target
    from rdma_fabric.views.output import Output


def reachable(
    options: argparse.Namespace, resolved: Resolved, names: Collection[str]
) -> tuple[dict[str, Target], Secrets]:
    """Addresses and credentials of the nodes."""
    from rdma_fabric.transport.credentials import Secrets
    from rdma_fabric.transport.targets import targets

    return targets(resolved.inventory, names, common.directory(options), options.lab), Secrets()


def observe(
    options: argparse.Namespace, resolved: Resolved, names: Collection[str], out: Output
) -> tuple[dict[str, Observation], dict[str, Failure]]:
    """What was read, and one failure for every node that was not."""
    from rdma_fabric.observe import observe as read
    from rdma_fabric.state import Observation
    from rdma_fabric.views.output import count

    if not names:
        return {}, {}
    addresses, secrets = reachable(options, resolved, names)
    out.say(f"reading {count(len(names), 'node')} ...")
    found = read(names, resolved.plans, addresses, secrets, workers=options.workers)
    seen = {name: one for name, one in found.items() if isinstance(one, Observation)}
    failed = {name: one for name, one in found.items() if not isinstance(one, Observation)}
    return seen, failed
