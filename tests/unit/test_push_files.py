"""The shell lines that confirm a change on a host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rdma_fabric.push import files


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
