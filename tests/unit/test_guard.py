"""A program that must end with the run that started it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from rdma_fabric.push import guard

SLEEPER = "setsid sh -c 'echo $$; exec sleep 600'"


def start(folder: Path, script: str) -> tuple[subprocess.Popen[str], int]:
    """The guard over a shell script, and the end of the pipe that keeps it."""
    reading, writing = os.pipe()
    words = [sys.executable, "-I", guard.__file__, str(reading), str(folder), "--", "sh", "-c", script]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, pass_fds=(reading,))
    os.close(reading)
    return process, writing


def alive(number: int) -> bool:
    """True for a process that is there and no zombie."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_the_exit_code_is_passed_on(tmp_path: Path) -> None:
    process, writing = start(tmp_path, "echo said; exit 3")
    assert process.communicate(timeout=30)[0] == "said\n"
    os.close(writing)
    assert process.returncode == 3 and tmp_path.is_dir()


def test_everything_ends_with_the_run(tmp_path: Path) -> None:
    """Also what went into a session of its own, and what its parent left behind, as OpenSSH's masters do."""
    folder = tmp_path / "ansible"
    folder.mkdir()
    process, writing = start(folder, f"{SLEEPER} & ({SLEEPER} &); echo $$; wait")
    assert process.stdout is not None
    numbers = [int(process.stdout.readline()) for _ in range(3)]
    assert all(map(alive, numbers))
    os.close(writing)
    assert process.wait(timeout=30) == 137
    end = time.monotonic() + 30
    while any(map(alive, numbers)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(alive, numbers)) and not folder.exists()
