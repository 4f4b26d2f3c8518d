"""`fabric drift --watch` over SSH: breaks and repairs between rounds, a silent switch, who is told."""

from __future__ import annotations

import json
import signal
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")
pytest.importorskip("prometheus_client", reason="the extra rdma-fabric[watch] is not installed")

from tests.support.fabrics import Fabric, lab_up, make, wait_for

pytestmark = pytest.mark.lab

SWITCHES = {"eos1": "arista_eos", "eos2": "arista_eos", "son1": "sonic", "son2": "sonic"}


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """Four switches at the intent and in service."""
    found = make(tmp_path_factory.mktemp("watch") / "fabric", SWITCHES)
    with lab_up(found):
        found.apply(status=0)
        found.edit("defaults.yaml", "planned", "active")
        yield found


@pytest.fixture
def hook() -> Iterator[tuple[str, list[Any]]]:
    """Address of a receiver, and what it got."""
    got: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/s3cret", got
    server.shutdown()
    server.server_close()


def _scan(fabric: Fabric, *words: str, status: int) -> Any:
    return fabric.json("drift", "--rounds", "1", *words, status=status).data


def _events(data: Any) -> list[tuple[str, str, str]]:
    return [(one["event"], one["node"], one.get("setting", "")) for one in data["events"]]


def test_rounds_with_breaks_and_repairs(fabric: Fabric, hook: tuple[str, list[Any]], tmp_path: Path) -> None:
    url, got = hook
    fabric.environment["FABRIC_WEBHOOK_URL"] = url
    file = tmp_path / "fabric.prom"
    words = ("--webhook", "--textfile", str(file))
    assert _events(_scan(fabric, *words, status=0)) == []

    fabric.somebody("eos1", "configure", "interface Ethernet1/1", "qos trust cos", "end")
    assert _events(_scan(fabric, *words, status=1)) == [("appeared", "eos1", "trust")]
    assert 'fabric_drift_settings{layer="running",setting="trust"} 1.0' in file.read_text("utf-8")

    with fabric.broken("son2", "unreachable"):
        assert _events(_scan(fabric, *words, status=1)) == [("silent", "son2", "")]
        text = file.read_text("utf-8")
        assert 'fabric_nodes{state="stale"} 1.0' in text
        assert 'fabric_nodes{state="drift"} 1.0' in text
        assert _events(_scan(fabric, *words, status=1)) == []

    fabric.apply("--assume-drained", "eos1", status=0)
    _awake(fabric)
    assert sorted(_events(_scan(fabric, *words, status=0))) == [
        ("back", "son2", ""),
        ("gone", "eos1", "trust"),
    ]
    assert 'fabric_nodes{state="clean"} 4.0' in file.read_text("utf-8")
    told = [(one["event"], one["node"]) for body in got for one in body["events"]]
    assert told[:2] == [("appeared", "eos1"), ("silent", "son2")]
    assert sorted(told[2:]) == [("back", "son2"), ("gone", "eos1")]
    db = sqlite3.connect(fabric.folder / ".fabric/lab/drift.sqlite3")
    [(node, found, gone)] = db.execute("SELECT node, found, gone IS NOT NULL FROM drift").fetchall()
    assert (node, found, gone) == ("eos1", "pcp", 1)
    assert db.execute("SELECT COUNT(*) FROM outbox").fetchone() == (0,)
    db.close()
    held = [path for path in (fabric.folder / ".fabric").rglob("*") if path.is_file()]
    assert not any(b"s3cret" in path.read_bytes() for path in held)


def _awake(fabric: Fabric) -> None:
    """As if the wait of silent nodes were over."""
    db = sqlite3.connect(fabric.folder / ".fabric/lab/drift.sqlite3")
    db.execute("UPDATE node SET retry = 0")
    db.commit()
    db.close()


def test_the_loop_ends_by_itself_and_by_sigterm(fabric: Fabric, tmp_path: Path) -> None:
    history = ("--history", str(tmp_path / "own.sqlite3"))
    process = fabric.start("drift", "--lab", "--watch", "1s", "--rounds", "3", "--format", "json", *history)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    rounds = [json.loads(line) for line in out.splitlines()]
    assert [one["clean"] for one in rounds] == [True] * 3
    process = fabric.start("drift", "--lab", "--watch", "1h", *history)
    wait_for(lambda: _scans(tmp_path / "own.sqlite3") == 4)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0


def _scans(path: Path) -> int:
    db = sqlite3.connect(path)
    number = db.execute("SELECT COUNT(*) FROM scan").fetchone()[0]
    db.close()
    return int(number)


def test_a_running_apply_is_left_out(fabric: Fabric) -> None:
    """A scan while an apply holds at a commit judges the other nodes and notifies nobody of this one."""
    fabric.somebody("eos2", "configure", "interface Ethernet1/1", "qos trust cos", "end")
    assert _events(_scan(fabric, status=1)) == [("appeared", "eos2", "trust")]
    with fabric.broken("eos2", "hold"):
        process = fabric.start("apply", "--lab", "--yes", "--assume-drained", "eos2", "--limit", "eos2")
        wait_for(lambda: fabric.held("eos2"))
        data = fabric.drift(status=0).data
        assert {row["node"]: bool(row["busy"]) for row in data["nodes"]} == {
            name: name == "eos2" for name in SWITCHES
        }
        assert _events(_scan(fabric, status=0)) == []
    assert process.wait(timeout=120) == 0
    assert _events(_scan(fabric, status=0)) == [("gone", "eos2", "trust")]
