"""The journal survives a cut at any byte; the lock dies with its process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdma_fabric.push.journal import FILE, Journal, Play, read, replay
from rdma_fabric.push.locks import Held, local_lock
from tests.support.states import steady

EVENTS: list[dict[str, Any]] = [
    {"event": "start", "at": "t0", "run": "abc", "kind": "apply", "inputs": "x", "lab": True, "undoes": ""},
    {"event": "node", "node": "gpu01", "phase": "planned", "wave": 1},
    {"event": "node", "node": "leaf\u00e9", "phase": "done", "status": "skipped", "detail": "line\nbreak"},
    {"event": "node", "node": "gpu01", "phase": "committing", "before": {"a": 1}, "wanted": {"a": 2},
     "settings": [["mtu", "1500", "9000"]]},
    {"event": "ansible", "at": "t1", "hosts": 2, "changed": 1},
    {"event": "node", "node": "gpu01", "phase": "committed"},
    {"event": "interrupted", "at": "t1"},
    {"event": "node", "node": "gpu01", "phase": "done", "status": "applied", "left": False},
    {"event": "end", "at": "t2"},
    {"event": "recovered", "at": "t3", "by": "def"},
]  # fmt: skip


def _write(folder: Path, events: list[dict[str, Any]]) -> bytes:
    journal = Journal(folder)
    for event in events:
        journal.append([event])
    journal.close()
    return (folder / FILE).read_bytes()


def test_what_is_replayed(tmp_path: Path) -> None:
    _write(tmp_path, EVENTS)
    record = read(tmp_path / FILE)
    assert (record.run, record.started, record.ended, record.lab) == ("abc", "t0", "t2", True)
    assert record.recovered_by == "def" and record.plays == (Play(2, 1),)
    node = record.nodes["gpu01"]
    assert (node.phase, node.status, node.wave, node.open) == ("done", "applied", 1, False)
    assert (node.before, node.settings) == ({"a": 1}, (("mtu", "1500", "9000"),))
    assert record.nodes["leaf\u00e9"].detail == "line\nbreak"


def test_a_cut_at_every_byte_gives_an_earlier_state(tmp_path: Path) -> None:
    data = _write(tmp_path / "whole", EVENTS)
    prefixes = [replay(EVENTS[:count]) for count in range(len(EVENTS) + 1)]
    path = tmp_path / FILE
    reached = 0
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        record = read(path)
        whole = data[:cut].count(b"\n")
        assert record == prefixes[whole]
        reached = max(reached, whole)
    assert reached == len(EVENTS)


def test_writing_goes_on_after_a_cut_at_every_byte(tmp_path: Path) -> None:
    data = _write(tmp_path / "whole", EVENTS[:4])
    more = {"event": "end", "at": "t9"}
    for cut in range(0, len(data) + 1, 3):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / FILE).write_bytes(data[:cut])
        _write(folder, [more])
        whole = data[:cut].count(b"\n")
        assert read(folder / FILE) == replay([*EVENTS[:whole], more])


@steady
@given(garbage=st.binary(max_size=30), at=st.integers(0, 400))
def test_garbage_ends_the_replay_and_raises_nothing(
    garbage: bytes, at: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("j")
    data = _write(folder, EVENTS)
    start = data.rfind(b"\n", 0, at) + 1
    (folder / FILE).write_bytes(data[:start] + b"{{" + garbage.replace(b"\n", b"") + b"\n" + data[start:])
    assert read(folder / FILE) == replay(EVENTS[: data[:start].count(b"\n")])


def test_no_journal_is_no_run(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == replay([])
    assert replay([]).unfinished


def test_one_append_is_one_line_per_event_and_closed_to_others(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    journal.append(EVENTS)
    journal.append([])
    journal.close()
    assert (tmp_path / "run" / FILE).read_bytes().count(b"\n") == len(EVENTS)
    assert stat.S_IMODE((tmp_path / "run" / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


def test_sixteen_thousand_nodes(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    names = [f"gpu{number:05d}" for number in range(16_384)]
    journal.append([EVENTS[0]])
    for phase in ("planned", "committing", "committed", "confirming", "done"):
        journal.append([{"event": "node", "node": name, "phase": phase} for name in names])
    journal.close()
    record = read(tmp_path / FILE)
    assert len(record.nodes) == 16_384
    assert {node.phase for node in record.nodes.values()} == {"done"}


HOLD = """
import sys, time
from pathlib import Path
from rdma_fabric.push.locks import local_lock
with local_lock(Path(sys.argv[1]), "abc"):
    print("held", flush=True)
    time.sleep(60)
"""


class TestLock:
    """One run at a time."""

    @pytest.fixture
    def holder(self, tmp_path: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    def test_a_second_process_is_told_who_holds_it(
        self, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        try:
            with pytest.raises(Held, match=rf"^run abc \(process {holder.pid}\) holds .*/lock; wait"):
                local_lock(tmp_path, "def").__enter__()
        finally:
            holder.kill()
            holder.wait()

    def test_kill_9_leaves_nothing_behind(self, holder: subprocess.Popen[str], tmp_path: Path) -> None:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        with local_lock(tmp_path, "def"):
            assert '"run": "def"' in (tmp_path / "lock").read_text(encoding="utf-8")

    def test_it_is_free_after_the_block_also_after_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError), local_lock(tmp_path, "abc"):
            raise RuntimeError
        with local_lock(tmp_path, "def"):
            pass
        assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", "\x00"])
    def test_a_lock_file_that_says_nothing(self, text: str, tmp_path: Path) -> None:
        with local_lock(tmp_path, "abc"):
            (tmp_path / "lock").write_text(text, encoding="utf-8")
            with pytest.raises(Held, match=r"^another run holds"):
                local_lock(tmp_path, "def").__enter__()
