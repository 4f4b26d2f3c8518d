"""Metrics for Prometheus, by its own client library: served over HTTP, or written for node_exporter."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdma_fabric import __version__
from rdma_fabric.findings import InputError, Position, input_finding
from rdma_fabric.watch.history import WORDS, History, Seen

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily

NEVER: float = 0.0
"""Timestamp of a node that was never read."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the last scan left, detached from the database: a scrape comes from another thread."""

    nodes: dict[str, Seen]
    settings: dict[tuple[str, str], int]
    scanned: float
    seconds: float
    scans: int
    waiting: int
    inputs_ok: bool

    @classmethod
    def of(cls, history: History, inputs_ok: bool) -> Sample:
        """From the database as it is now."""
        at, seconds, number = history.last_scan() or (NEVER, 0.0, 0)
        return cls(history.nodes(), history.by_setting(), at, seconds, number, history.waiting(), inputs_ok)


@dataclass(eq=False)
class Metrics:
    """A collector that holds the newest sample. Ages are computed when asked for."""

    fabric: str
    clock: Callable[[], float] = time.time
    _sample: Sample | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def set(self, sample: Sample) -> None:
        """The next scrape shows this one."""
        with self._lock:
            self._sample = sample

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """prometheus_client's interface of a collector."""
        with self._lock:
            sample = self._sample
        info = {(self.fabric, __version__): 1.0}
        yield _gauge("fabric_info", "What is watched and by which version.", info, ("fabric", "version"))
        if sample is not None:
            yield from self._families(sample)

    def _families(self, sample: Sample) -> Iterable[GaugeMetricFamily]:
        words = {(word,): 0.0 for word in WORDS}
        for seen in sample.nodes.values():
            words[(seen.word,)] += 1
        yield _gauge("fabric_nodes", "Nodes by state; stale is not clean.", words, ("state",))
        drifts = {key: float(number) for key, number in sample.settings.items()}
        yield _gauge(
            "fabric_drift_settings", "Open drifts of nodes that count.", drifts, ("setting", "layer")
        )
        yield _gauge("fabric_scan_duration_seconds", "How long the last scan took.", {(): sample.seconds})
        yield _gauge("fabric_scan_timestamp_seconds", "When the last scan ended.", {(): sample.scanned})
        yield _gauge("fabric_scans", "Number of the last scan.", {(): float(sample.scans)})
        good = {
            (name,): seen.last_good or NEVER
            for name, seen in sample.nodes.items()
            if seen.word not in ("skipped",)
        }
        text = "When the node was read last; 0: never."
        yield _gauge("fabric_last_good_read_timestamp_seconds", text, good, ("node",))
        ages = [self.clock() - one for one in good.values() if one]
        if ages:
            text = "Age of the oldest last good read."
            yield _gauge("fabric_last_good_read_age_seconds_max", text, {(): max(0.0, *ages)})
        text = "0: intent or inventory do not load; the last good ones are used."
        yield _gauge("fabric_inputs_ok", text, {(): float(sample.inputs_ok)})
        yield _gauge("fabric_webhook_waiting", "Messages not delivered yet.", {(): float(sample.waiting)})

    def registry(self) -> CollectorRegistry:
        """A registry of its own with only this collector."""
        from prometheus_client import CollectorRegistry

        found = CollectorRegistry(auto_describe=False)
        found.register(self)
        return found

    def serve(self, address: str, port: int) -> None:
        """Answers GET /metrics from now on; InputError when the port cannot be had."""
        from prometheus_client import start_http_server

        try:
            start_http_server(port, address, self.registry())
        except OSError as error:
            at = Position(f"--metrics {address}:{port}", 0, 0)
            text = error.strerror or str(error)
            raise InputError([input_finding("reference", text, at, "give another port")]) from None

    def write(self, path: Path) -> None:
        """A file for node_exporter's textfile collector, replaced in one step."""
        from prometheus_client import write_to_textfile

        write_to_textfile(str(path), self.registry())


def _gauge(name: str, text: str, values: dict[Any, float], labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family


def installed() -> None:
    """InputError when the client library is not there."""
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        at, help = Position("--metrics", 0, 0), "pip install 'rdma-fabric[watch]'"
        message = "metrics need the package prometheus-client"
        raise InputError([input_finding("reference", message, at, help)]) from None
