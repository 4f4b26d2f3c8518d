"""Trouble of the machine, a full disk for one, is told as such: one line, exit 2, no fault of fabric's."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path

import pytest

from rdma_fabric.cli.common import guarded


def _fails(error: Exception) -> int:
    def run(_: argparse.Namespace) -> int:
        raise error

    return guarded(run, argparse.Namespace())


@pytest.fixture(autouse=True)
def _no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FABRIC_DEBUG", raising=False)


def test_a_full_disk_is_not_our_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert _fails(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) == 2
    told = capsys.readouterr().err
    assert told.startswith("fabric: No space left on device\n") and "next apply or rollback" in told
    assert "fault" not in told


def test_the_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        tmp_path.read_bytes()
    except OSError as error:
        assert _fails(error) == 2
    assert capsys.readouterr().err.startswith(f"fabric: {tmp_path}: Is a directory\n")


def test_a_bug_is_our_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert _fails(ValueError("x")) == 2
    assert "fault of fabric itself" in capsys.readouterr().err
