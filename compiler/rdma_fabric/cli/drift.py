"""`fabric drift`: observe, compare, report."""

from __future__ import annotations

import argparse

from rdma_fabric.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric drift`."""
    common.folder_options(parser)
    common.format_option(parser)
    common.limit_option(parser)
    common.device_options(parser)


def run(options: argparse.Namespace) -> int:
    """0 clean, 1 drift or a node unreadable, 2 nothing readable."""
    from rdma_fabric.cli import planning
    from rdma_fabric.drift import clean, find_drift
    from rdma_fabric.views.drift_text import drift_json, drift_text

    out = common.output(options)
    work = planning.look(options, out)
    skipped = {row.node: row.reason for row in work.scope.fixed if row.status == "skipped"}
    rejected = {row.node: row.reason for row in work.scope.fixed if row.status == "rejected"}
    failures = {name: f"{one.kind}: {one.text}" for name, one in work.failures.items()}
    failures |= {name: f"its intent has errors: {why}" for name, why in rejected.items()}
    rows = find_drift(work.resolved.inventory, work.scope.targets, work.observations, failures, skipped)
    out.data(drift_json(rows) if options.format == "json" else drift_text(rows, out))
    for one in work.scope.left:
        out.say(
            f"{one.node} {one.setting}: was {one.value}, is not in the intent any more and stays as it is"
        )
    if work.scope.names and not work.observations:
        return 2
    return 0 if clean(rows) else 1
