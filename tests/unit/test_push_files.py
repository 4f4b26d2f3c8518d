"""Hosts through Ansible: what is read from its events, and the shell lines around it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.push import files
from rdma_fabric.push.journal import Play


@pytest.mark.parametrize(
    ("script", "status"),
    [(None, 0), ("#!/bin/sh\nexit 0\n", 0), ("#!/bin/sh\nexit 3\n", 3)],
    ids=["never installed", "confirmed", "refused"],
)
def test_confirm(script: str | None, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "fabric-host"
    if script is not None:
        program.write_text(script, encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setattr(files, "PROGRAM", str(program))
    monkeypatch.setattr(files, "_as_root", lambda command: command)
    assert subprocess.run(["sh", "-c", files.confirm_line("none")], check=False).returncode == status


# ---------------------------------------------------------------- what Ansible says


def test_its_own_count() -> None:
    stats = {
        "ok": {"a": 3, "b": 3, "c": 1},
        "dark": {"d": 1},
        "changed": {"a": 1, "b": 0},
        "failures": {"c": 1},
    }
    events: list[dict[str, Any]] = [
        {"event": "playbook_on_start"},
        {"event": "playbook_on_stats", "event_data": stats},
    ]
    assert files._play(events) == Play(4, 1)
    assert files._play([]) == Play(0, 0)


def test_a_program_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(files, "RUN_S", 0.2)
    with pytest.raises(subprocess.TimeoutExpired):
        files._guarded([sys.executable, "-c", "import time; time.sleep(600)"], {}, (str(tmp_path / "x"),))


def test_a_guarded_program_says_what_it_says(tmp_path: Path) -> None:
    said = files._guarded(["sh", "-c", "echo out; echo err >&2"], {}, (str(tmp_path / "x"),))
    assert said == ("out\n", "err\n")
