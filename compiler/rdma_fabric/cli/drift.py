"""`fabric drift`: observe, compare, report; once, or again and again."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from rdma_fabric.cli import common

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric drift`."""
    common.folder_options(parser)
    common.format_option(parser)
    common.limit_option(parser)
    common.device_options(parser)
    watch = parser.add_argument_group("watching (docs/watch.md)")
    watch.add_argument(
        "--watch", type=interval, metavar="INTERVAL", help="scan again and again: 30s, 5m, 1h between scans"
    )
    watch.add_argument(
        "--rounds", type=common.positive, metavar="N", help="end after N scans (1: for a timer)"
    )
    watch.add_argument(
        "--history", metavar="FILE", help="the SQLite file (default: DIR/.fabric/drift.sqlite3)"
    )
    watch.add_argument(
        "--metrics", metavar="[ADDRESS:]PORT", help="answer Prometheus there (default address: 127.0.0.1)"
    )
    watch.add_argument(
        "--textfile", metavar="FILE", help="write the metrics for node_exporter after every scan"
    )
    watch.add_argument(
        "--webhook", action="store_true", help="post what changed to the address in FABRIC_WEBHOOK_URL"
    )


def interval(text: str) -> float:
    """Seconds of 30s, 5m, 1h, for argparse; at least a second, at most a week."""
    found = re.fullmatch(r"([0-9]{1,6})([smh])", text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 1.0 <= seconds <= 7 * 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not an interval: write for example 30s, 5m or 1h")
    return seconds


def run(options: argparse.Namespace) -> int:
    """0 clean, 1 drift or unreadable nodes, 2 nothing readable; watching: of the last scan, 130 by Ctrl-C."""
    if options.watch is not None or options.rounds is not None:
        from rdma_fabric.cli import watching

        return watching.run(options)
    _refuse_watch_options(options)
    return _once(options)


def _refuse_watch_options(options: argparse.Namespace) -> None:
    from rdma_fabric.findings import InputError, Position, input_finding

    for name in ("history", "metrics", "textfile", "webhook"):
        if getattr(options, name):
            at, help = Position(f"--{name}", 0, 0), "add --watch 5m, or --rounds 1 for one scan with history"
            raise InputError([input_finding("reference", "belongs to a watch", at, help)])


def _once(options: argparse.Namespace) -> int:
    from rdma_fabric.cli import planning
    from rdma_fabric.drift import clean, find_drift
    from rdma_fabric.push.runs import busy
    from rdma_fabric.state_dir import state_dir
    from rdma_fabric.views.drift_text import drift_json, drift_text

    out = common.output(options)
    state = state_dir(common.directory(options))
    moving = busy(state)
    work = planning.look(options, out)
    moving |= busy(state)
    skipped = {row.node: row.reason for row in work.scope.fixed if row.status == "skipped"}
    rejected = {row.node: row.reason for row in work.scope.fixed if row.status == "rejected"}
    failures = {name: f"{one.kind}: {one.text}" for name, one in work.failures.items()}
    failures |= {name: f"its intent has errors: {why}" for name, why in rejected.items()}
    inventory = work.resolved.inventory
    rows = find_drift(inventory, work.scope.targets, work.observations, failures, skipped, moving)
    out.data(drift_json(rows) if options.format == "json" else drift_text(rows, out))
    for one in work.scope.left:
        out.say(
            f"{one.node} {one.setting}: was {one.value}, is not in the intent any more and stays as it is"
        )
    if work.scope.names and not work.observations:
        return 2
    return 0 if clean(rows) else 1


def history_file(options: argparse.Namespace, state: Path) -> Path:
    """Where the history lies; a lab's apart from that of the real devices."""
    from rdma_fabric.watch.history import FILE

    if options.history:
        return Path(options.history)
    return state / "lab" / FILE if options.lab else state / FILE
