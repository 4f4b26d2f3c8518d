"""`fabric drift --watch`: the loop around scans; everything that lasts is in rdma_fabric.watch."""

from __future__ import annotations

import argparse
import re
import signal
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rdma_fabric.cli import common

if TYPE_CHECKING:
    from types import FrameType

    from rdma_fabric.resolve import Resolved
    from rdma_fabric.state import Observation
    from rdma_fabric.transport.errors import Failure
    from rdma_fabric.views.output import Output
    from rdma_fabric.watch.history import History
    from rdma_fabric.watch.metrics import Metrics
    from rdma_fabric.watch.notify import Webhook
    from rdma_fabric.watch.rounds import Round, Watcher

ONCE_S = 300.0
"""Interval that --rounds without --watch assumes, for the waits of silent nodes."""


def run(options: argparse.Namespace) -> int:
    """Scans until it is stopped or has done its rounds. SIGTERM ends it like the last round."""
    from rdma_fabric.cli.drift import history_file
    from rdma_fabric.state_dir import state_dir
    from rdma_fabric.watch.history import History
    from rdma_fabric.watch.notify import Webhook

    out = common.output(options)
    folder = common.directory(options)
    state = state_dir(folder)
    webhook = Webhook.from_environment() if options.webhook else None
    if options.metrics or options.textfile:
        from rdma_fabric.watch.metrics import installed

        installed()
    path = history_file(options, state)
    path.parent.mkdir(parents=True, exist_ok=True)
    history = History(path)
    try:
        watcher = _watcher(options, folder, state, history)
        metrics = _metrics(options, watcher)
        return _loop(options, watcher, metrics, webhook, out)
    finally:
        history.close()


def _watcher(options: argparse.Namespace, folder: Path, state: Path, history: History) -> Watcher:
    from rdma_fabric.cli import planning
    from rdma_fabric.observe import observe
    from rdma_fabric.watch.rounds import Watcher

    def read(resolved: Resolved, names: Collection[str]) -> Mapping[str, Observation | Failure]:
        from rdma_fabric.cli.live import reachable

        addresses, secrets = reachable(options, resolved, names)  # secrets anew: a password may have changed
        return observe(names, resolved.plans, addresses, secrets, workers=options.workers)

    return Watcher(
        folder=folder,
        state=state,
        applied=state / planning.applied_folder(options),
        history=history,
        load=lambda: common.load(folder),
        select=lambda resolved: common.scope(resolved, options.limit),
        read=read,
        clock=time.time,
        interval=options.watch or ONCE_S,
        tell=options.webhook,
    )


def _metrics(options: argparse.Namespace, watcher: Watcher) -> Metrics | None:
    if not (options.metrics or options.textfile):
        return None
    from rdma_fabric.watch.metrics import Metrics

    metrics = Metrics(watcher.fabric)
    if options.metrics:
        metrics.serve(*_listen(options.metrics))
    return metrics


def _listen(text: str) -> tuple[str, int]:
    from rdma_fabric.findings import InputError, Position, input_finding

    found = re.fullmatch(r"(?:(.+):)?([0-9]{1,5})", text)
    if not found or not 0 < int(found[2]) < 65536:
        at, help = Position(f"--metrics {text}", 0, 0), "write 9123, 0.0.0.0:9123 or [::]:9123"
        raise InputError([input_finding("reference", "is not [ADDRESS:]PORT", at, help)])
    return (found[1] or "127.0.0.1").strip("[]"), int(found[2])


class _Stopped(Exception):
    """SIGTERM came."""


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise _Stopped


def _loop(
    options: argparse.Namespace,
    watcher: Watcher,
    metrics: Metrics | None,
    webhook: Webhook | None,
    out: Output,
) -> int:
    from rdma_fabric.watch.rounds import next_wait

    before = signal.signal(signal.SIGTERM, _stop)
    number, code = 0, 2
    try:
        while True:
            number += 1
            code = _round(options, watcher, metrics, webhook, out)
            if options.rounds and number >= options.rounds:
                return code
            _sleep(next_wait(watcher.interval), watcher.history, webhook, out)
    except _Stopped:
        return code
    finally:
        signal.signal(signal.SIGTERM, before)


def _round(
    options: argparse.Namespace,
    watcher: Watcher,
    metrics: Metrics | None,
    webhook: Webhook | None,
    out: Output,
) -> int:
    from rdma_fabric.views.watch_text import round_json, round_text

    found = watcher.round()
    out.data(round_json(found) if options.format == "json" else round_text(found, out))
    if webhook is not None:
        _deliver(watcher.history, webhook, out)
    if metrics is not None:
        from rdma_fabric.watch.metrics import Sample

        metrics.set(Sample.of(watcher.history, not found.inputs))
        if options.textfile:
            metrics.write(Path(options.textfile))
    return _code(found)


def _code(found: Round) -> int:
    read = [row for row in found.rows if not (row.failure or row.skipped or row.busy)]
    tried = [row for row in found.rows if not (row.skipped or row.busy)]
    if tried and not read:
        return 2
    return 0 if found.clean else 1


def _deliver(history: History, webhook: Webhook, out: Output) -> None:
    from rdma_fabric.watch.notify import deliver

    for text in deliver(history, webhook, time.time()):
        out.complain(text)


def _sleep(seconds: float, history: History, webhook: Webhook | None, out: Output) -> None:
    """Waits for the next round; what could not be delivered is tried again meanwhile."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if webhook is None or not history.waiting():
            time.sleep(left)
            return
        time.sleep(min(left, 5.0))
        _deliver(history, webhook, out)
