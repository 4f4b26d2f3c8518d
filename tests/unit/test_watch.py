"""Scans again and again with a clock and a reader of our own: history, events, waits, metrics, webhook."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from rdma_fabric import platforms
from rdma_fabric.cli import common, drift, main
from rdma_fabric.findings import InputError
from rdma_fabric.push.journal import Journal
from rdma_fabric.push.locks import local_lock
from rdma_fabric.resolve import Resolved
from rdma_fabric.state import NodeState, Observation
from rdma_fabric.state_dir import state_dir
from rdma_fabric.transport.errors import Failure
from rdma_fabric.views.output import Output
from rdma_fabric.views.watch_text import round_json, round_text
from rdma_fabric.watch.history import EVENTS_PER_MESSAGE, FILE, Event, History
from rdma_fabric.watch.metrics import Metrics, Sample
from rdma_fabric.watch.notify import Webhook, deliver
from rdma_fabric.watch.rounds import LONGEST_WAIT_S, Round, Watcher, back_off, next_wait

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "inventory/demo"
MINUTE = 60.0


@dataclass
class _World:
    """A fabric that is as wanted until something is broken, and a clock that moves by hand."""

    folder: Path
    now: float = 1_000_000.0
    broken: dict[str, int] = field(default_factory=dict)
    """Node -> another MTU."""
    dead: set[str] = field(default_factory=set)
    asked: list[list[str]] = field(default_factory=list)
    watcher: Watcher = field(init=False)

    def __post_init__(self) -> None:
        state = state_dir(self.folder)
        self.watcher = Watcher(
            folder=self.folder,
            state=state,
            applied=state / "applied",
            history=History(state / FILE),
            load=lambda: common.load(self.folder),
            select=lambda resolved: common.scope(resolved, ""),
            read=self.read,
            clock=lambda: self.now,
            interval=5 * MINUTE,
            tell=True,
        )

    def read(self, resolved: Resolved, names: Collection[str]) -> Mapping[str, Observation | Failure]:
        self.asked.append(sorted(names))
        return {name: self._look(resolved, name) for name in names}

    def _look(self, resolved: Resolved, name: str) -> Observation | Failure:
        if name in self.dead:
            return Failure(name, "timeout", "no answer within 10 s")
        plan = resolved.plans[name]
        state = platforms.realize(plan.state, plan.hardware).state
        if name in self.broken:
            port = state.ports[0]
            mtu = replace(port.settings.mtu, ip=self.broken[name])
            ports = (replace(port, settings=replace(port.settings, mtu=mtu)), *state.ports[1:])
            state = NodeState(state.system, ports)
        return Observation(state)

    def round(self, minutes: float = 5.0) -> Round:
        self.now += minutes * MINUTE
        return self.watcher.round()

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text("utf-8")
        assert old in text
        (self.folder / name).write_text(text.replace(old, new), "utf-8")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[_World]:
    folder = tmp_path / "demo"
    shutil.copytree(DEMO, folder, ignore=shutil.ignore_patterns(".fabric"))
    (folder / "defaults.yaml").write_text("data: {state: active}\n", "utf-8")
    world = _World(folder)
    yield world
    world.watcher.history.close()


def _what(events: Collection[Event]) -> list[tuple[str, str, str]]:
    return [(one.what, one.node, one.setting) for one in events]


def test_only_changes_are_events(world: _World) -> None:
    assert world.round().clean
    world.broken["gpu03"] = 1500
    found = world.round()
    assert not found.clean
    assert _what(found.events) == [("appeared", "gpu03", "mtu")]
    assert (found.events[0].found, found.events[0].wanted) == ("1500", "9000")
    first = world.now
    assert world.round().events == ()
    world.broken["gpu03"] = 4096
    found = world.round()
    assert [(one.what, one.found, one.first_seen) for one in found.events] == [("changed", "4096", first)]
    del world.broken["gpu03"]
    found = world.round()
    assert [(one.what, one.found, one.first_seen) for one in found.events] == [("gone", "4096", first)]
    assert found.clean


def test_history_knows_first_and_last(world: _World) -> None:
    world.broken["leaf01"] = 1500
    world.round()
    first = world.now
    world.round()
    [open_] = world.watcher.history.drifts()
    assert (open_["node"], open_["first_seen"], open_["last_seen"], open_["gone"]) == (
        "leaf01",
        first,
        world.now,
        None,
    )
    world.broken.clear()
    world.round()
    assert world.watcher.history.drifts() == []
    [ended] = world.watcher.history.drifts(gone=True)
    assert ended["gone"] == world.now
    world.broken["leaf01"] = 1500
    world.round()
    assert [one["gone"] is None for one in world.watcher.history.drifts(gone=True)] == [False, True]


def test_a_silent_node_is_stale_and_not_clean(world: _World) -> None:
    world.broken["gpu01"] = 1500
    world.round()
    good = world.now
    world.dead.add("gpu01")
    found = world.round()
    assert _what(found.events) == [("silent", "gpu01", "")]
    assert not found.clean
    seen = world.watcher.history.nodes()["gpu01"]
    assert (seen.word, seen.last_good, seen.failures) == ("stale", good, 1)
    assert [one["last_seen"] for one in world.watcher.history.drifts()] == [good]
    assert world.round().events == ()
    world.dead.clear()
    world.broken.clear()
    world.now += LONGEST_WAIT_S
    assert _what(world.round().events) == [("back", "gpu01", ""), ("gone", "gpu01", "mtu")]


def test_a_silent_node_is_asked_more_and_more_seldom(world: _World) -> None:
    world.dead.add("gpu02")
    gaps, last = [], world.now
    for _ in range(60):
        world.round()
        if "gpu02" in world.asked[-1]:
            gaps.append(round((world.now - last) / MINUTE))
            last = world.now
    assert gaps[:6] == [5, 5, 10, 20, 40, 60]
    assert set(gaps[6:]) <= {60, 65}
    assert all(len(names) >= 13 for names in world.asked)


def test_waits() -> None:
    assert [back_off(number, 60.0) for number in (0, 1, 2, 3, 4)] == [0.0, 0.0, 120.0, 240.0, 480.0]
    assert back_off(1000, 60.0) == LONGEST_WAIT_S
    assert back_off(5, 7200.0) == 7200.0
    assert next_wait(100.0, lambda: 0.0) == pytest.approx(90.0)
    assert next_wait(100.0, lambda: 1.0) == pytest.approx(110.0)


def test_a_running_apply_is_not_drift(world: _World) -> None:
    world.round()
    world.broken.update(gpu01=1500, gpu02=1500)
    journal = Journal(world.watcher.state / "runs" / "k3x9ab")
    start = {"event": "start", "run": "k3x9ab", "at": "now"}
    journal.append([start, {"event": "node", "node": "gpu01", "phase": "committing"}])
    with local_lock(world.watcher.state, "k3x9ab"):
        found = world.round()
    journal.close()
    assert _what(found.events) == [("appeared", "gpu02", "mtu")]
    row = next(one for one in found.rows if one.node == "gpu01")
    assert (row.word, row.busy) == ("busy", "run k3x9ab is going on")
    assert "gpu01" not in world.asked[-1]
    assert _what(world.round().events) == [("appeared", "gpu01", "mtu")]


def test_nodes_outside_active_are_notes(world: _World) -> None:
    world.edit(
        "hosts.yaml", "gpu[01-08]: {groups: [gpu], ", "gpu[01-08]: {groups: [gpu], data: {state: planned}, "
    )
    world.broken["gpu01"] = 1500
    world.dead.add("gpu02")
    found = world.round()
    assert found.clean
    assert found.events == ()
    words = {row.node: row.word for row in found.rows}
    assert (words["gpu01"], words["gpu02"], words["gpu03"]) == ("note", "stale", "clean")
    world.edit("hosts.yaml", "state: planned", "state: active")
    world.now += LONGEST_WAIT_S
    assert _what(world.round().events) == [("appeared", "gpu01", "mtu"), ("silent", "gpu02", "")]


def test_inputs_are_read_anew_and_bad_ones_are_not_used(world: _World) -> None:
    world.round()
    world.edit("fabric.yaml", "host: 9000", "host: 4200")
    world.broken.update(dict.fromkeys((f"gpu0{n}" for n in range(1, 9)), 4200))
    assert world.round().clean
    world.edit("fabric.yaml", "priority: 3,", "priority: 33,")
    found = world.round()
    assert found.clean
    assert "'33' is not a priority" in found.inputs
    world.edit("fabric.yaml", "priority: 33,", "priority: 3,")
    assert not world.round().inputs


def test_inputs_that_never_were_good(world: _World) -> None:
    world.edit("fabric.yaml", "priority: 3,", "priority: 33,")
    with pytest.raises(InputError):
        world.watcher.round()


def test_nodes_that_left_the_inventory_are_forgotten(world: _World) -> None:
    world.broken["gpu08"] = 1500
    world.round()
    for file in ("hosts.yaml", "cables.csv"):
        text = (world.folder / file).read_text("utf-8")
        text = text.replace("gpu[01-08]", "gpu[01-07]").replace("192.0.2.[101-108]", "192.0.2.[101-107]")
        text = text.replace("gpu[05-08],eth0,leaf03,swp[1-4]", "gpu[05-07],eth0,leaf03,swp[1-3]")
        text = text.replace(
            'gpu[05-08],eth1,leaf04,"Ethernet[0,8,16,24]"', 'gpu[05-07],eth1,leaf04,"Ethernet[0,8,16]"'
        )
        (world.folder / file).write_text(text, "utf-8")
    assert world.round().clean
    assert "gpu08" not in world.watcher.history.nodes()
    assert world.watcher.history.drifts() == []


def test_a_scan_that_dies_leaves_the_one_before(world: _World) -> None:
    world.round()
    before = world.watcher.history.last_scan()
    rows = world.watcher.round().rows
    broken = (*rows[:3], replace(rows[3], node=None))  # type: ignore[arg-type]
    with pytest.raises(sqlite3.Error):
        world.watcher.history.record(broken, 5.0, 1.0)
    assert len(world.watcher.history.nodes()) == len(rows)
    assert world.watcher.history.last_scan() != before
    assert world.round().clean


def test_a_history_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / FILE
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(InputError, match="version 99"):
        History(path)
    path.write_text("no database at all, only text that is long enough to be read as one " * 20)
    with pytest.raises(InputError, match="not a database"):
        History(path)


# -- metrics


def _value(text: str, name: str) -> float:
    [line] = [one for one in text.splitlines() if one.startswith(f"{name} ")]
    return float(line.rsplit(" ", 1)[1])


def test_metrics(world: _World, tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client", reason="the extra rdma-fabric[watch] is not installed")
    world.round()
    world.broken["gpu01"] = 1500
    world.dead.add("gpu02")
    world.round()
    world.round()
    metrics = Metrics("demo", clock=lambda: world.now)
    metrics.set(Sample.of(world.watcher.history, True))
    file = tmp_path / "fabric.prom"
    metrics.write(file)
    text = file.read_text("utf-8")
    assert _value(text, 'fabric_nodes{state="clean"}') == 12
    assert _value(text, 'fabric_nodes{state="drift"}') == 1
    assert _value(text, 'fabric_nodes{state="stale"}') == 1
    assert _value(text, 'fabric_nodes{state="busy"}') == 0
    assert _value(text, 'fabric_drift_settings{layer="running",setting="mtu"}') == 1
    assert _value(text, "fabric_last_good_read_age_seconds_max") == 600
    assert _value(text, 'fabric_last_good_read_timestamp_seconds{node="gpu02"}') == world.now - 600
    assert _value(text, "fabric_scan_timestamp_seconds") == world.now
    assert _value(text, "fabric_scans") == 3
    assert _value(text, "fabric_inputs_ok") == 1
    assert _value(text, "fabric_webhook_waiting") == 1


def test_metrics_over_http(world: _World) -> None:
    pytest.importorskip("prometheus_client", reason="the extra rdma-fabric[watch] is not installed")
    import socket
    from urllib.request import urlopen

    world.round()
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    metrics = Metrics("demo")
    metrics.set(Sample.of(world.watcher.history, True))
    metrics.serve("127.0.0.1", port)
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        assert 'fabric_nodes{state="clean"} 14.0' in answer.read().decode()
    with pytest.raises(InputError):
        Metrics("demo").serve("127.0.0.1", port)


# -- webhook


class _Receiver(BaseHTTPRequestHandler):
    answers: list[int]
    got: list[tuple[Mapping[str, str], Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((dict(self.headers), json.loads(body)))
        self.send_response(self.answers.pop(0) if self.answers else 204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def _receiver(*answers: int) -> Iterator[tuple[str, list[tuple[Mapping[str, str], Any]]]]:
    kind = type("Receiver", (_Receiver,), {"answers": list(answers), "got": []})
    server = HTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook/s3cret", kind.got  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()


def test_webhook_gets_each_change_once(world: _World) -> None:
    with _receiver() as (url, got):
        hook = Webhook(url, "t0ken")
        for broken in ({}, {"gpu01": 1500}, {"gpu01": 1500}, {"gpu01": 4096}, {}, {}):
            world.broken = dict(broken)
            world.round()
            assert deliver(world.watcher.history, hook, world.now) == ()
    events = [[one["event"] for one in body["events"]] for _, body in got]
    assert events == [["appeared"], ["changed"], ["gone"]]
    assert {body["fabric"] for _, body in got} == {"demo"}
    assert got[0][0]["Authorization"] == "Bearer t0ken"
    assert world.watcher.history.waiting() == 0


def test_webhook_is_tried_again_in_order_with_growing_waits(world: _World) -> None:
    with _receiver(503, 500, 429) as (url, got):
        hook = Webhook(url)
        world.broken["gpu01"] = 1500
        world.round()
        world.broken["gpu02"] = 1500
        world.round()
        start, history = world.now, world.watcher.history
        assert "next try in 5 s" in deliver(history, hook, start)[0]
        assert deliver(history, hook, start + 4) == ()
        assert "next try in 10 s" in deliver(history, hook, start + 5)[0]
        assert "next try in 20 s" in deliver(history, hook, start + 15)[0]
        assert deliver(history, hook, start + 35) == ()
    assert [body["events"][0]["node"] for _, body in got] == ["gpu01"] * 4 + ["gpu02"]
    assert len({headers["X-Fabric-Delivery"] for headers, _ in got}) == 2


def test_webhook_that_refuses_loses_one_message_only(world: _World) -> None:
    with _receiver(400) as (url, got):
        world.broken["gpu01"] = 1500
        world.round()
        world.broken.clear()
        world.round()
        [told] = deliver(world.watcher.history, Webhook(url), world.now)
    assert "HTTP 400" in told
    assert "s3cret" not in told
    assert [body["events"][0]["event"] for _, body in got] == ["appeared", "gone"]


def test_webhook_that_is_not_there(world: _World) -> None:
    world.broken["gpu01"] = 1500
    world.round()
    [told] = deliver(world.watcher.history, Webhook("http://127.0.0.1:9/s3cret"), world.now)
    assert "does not answer" in told
    assert "s3cret" not in told
    assert world.watcher.history.waiting() == 1


def test_many_events_are_several_messages(world: _World) -> None:
    world.round()
    rows = [replace(row, failure="gone") for row in world.round().rows]
    many = [replace(rows[0], node=f"n{index}") for index in range(EVENTS_PER_MESSAGE + 1)]
    world.watcher.history.record(many, world.now, 1.0, message={"fabric": "demo"})
    sizes = [len(json.loads(one.body)["events"]) for one in world.watcher.history.due(world.now)]
    assert sizes == [EVENTS_PER_MESSAGE, 1]


# -- command line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--watch", "0s"], "is not an interval"),
        (["--watch", "5"], "is not an interval"),
        (["--webhook"], "add --watch 5m"),
        (["--watch", "5m", "--webhook"], "FABRIC_WEBHOOK_URL is not set"),
        (["--watch", "5m", "--metrics", "x"], "is not [ADDRESS:]PORT"),
    ],
)
def test_options(
    words: list[str],
    said: str,
    world: _World,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FABRIC_WEBHOOK_URL", raising=False)
    assert main(["drift", str(world.folder), *words]) == 2
    assert said in capsys.readouterr().err


def test_nothing_readable_ends_with_two(world: _World, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing listens there: every node fails at once, and the one round has its history."""
    text = (world.folder / "defaults.yaml").read_text("utf-8")
    (world.folder / "defaults.yaml").write_text(f"hostname: 127.0.0.1\nport: 9\n{text}", "utf-8")
    words = ["drift", str(world.folder), "--rounds", "1", "--limit", "leaf01", "--format", "json"]
    assert main(words) == 2
    data = json.loads(capsys.readouterr().out)
    Draft202012Validator(json.loads((ROOT / "docs/schemas/watch.json").read_text("utf-8"))).validate(data)
    assert data["not_clean"] == {"leaf01": "stale"}
    assert [one["event"] for one in data["events"]] == ["silent"]


def test_every_event_is_valid_under_the_schema(world: _World) -> None:
    schema = json.loads((ROOT / "docs/schemas/watch.json").read_text("utf-8"))
    world.broken["gpu01"] = 1500
    world.dead.add("gpu02")
    for _ in range(2):
        found = world.round()
        Draft202012Validator(schema).validate(json.loads(round_json(found)))
        assert len(round_text(found, Output()).splitlines()) == len(found.events) + 1
        world.broken.clear()


# -- what is shipped beside


def test_alerts_ask_for_metrics_that_are_there(world: _World) -> None:
    pytest.importorskip("prometheus_client", reason="the extra rdma-fabric[watch] is not installed")
    world.broken["gpu01"] = 1500
    world.round()
    metrics = Metrics("demo")
    metrics.set(Sample.of(world.watcher.history, True))
    have = {family.name: family for family in metrics.collect()}
    rules = yaml.safe_load((ROOT / "examples/watch/alerts.yaml").read_text("utf-8"))
    asked = " ".join(rule["expr"] for rule in rules["groups"][0]["rules"])
    named = set(re.findall(r"fabric_[a-z_]+", asked))
    assert len(named) >= 5
    assert named <= have.keys()
    page = (ROOT / "docs/watch.md").read_text("utf-8")
    assert [name for name in have if name not in page] == []


@pytest.mark.parametrize("name", ["fabric-watch.service", "fabric-drift.service"])
def test_units_run_commands_that_there_are(name: str) -> None:
    text = (ROOT / "examples/watch" / name).read_text("utf-8")
    [line] = re.findall(r"^ExecStart=/usr/bin/env fabric (.+)$", text, re.MULTILINE)
    command, *words = line.split()
    assert command == "drift"
    parser = argparse.ArgumentParser()
    drift.arguments(parser)
    found = parser.parse_args(words)
    assert found.watch or found.rounds


def test_units_are_good_for_systemd(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("hardware: this machine has no systemd")
    for path in (ROOT / "examples/watch").glob("fabric-*"):
        text = path.read_text("utf-8").replace("User=fabric", "User=root")
        (tmp_path / path.name).write_text(text, "utf-8")
    units = sorted(str(path) for path in tmp_path.glob("fabric-*"))
    done = subprocess.run([analyze, "verify", *units], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "fabric-" in line]
    assert complaints == []
