"""The local lock: one run per fabric folder at a time. It goes away with the process that holds it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Held(Exception):
    """Another run holds the lock; the text names it."""


@contextmanager
def local_lock(state: Path, run: str) -> Iterator[None]:
    """Holds DIR/.fabric/lock while the block runs; Held when another process does.

    The kernel drops the lock when the process ends, however it ends, so nothing stale is left.
    """
    path = state / "lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Held(_holder(fd, path)) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps({"run": run, "pid": os.getpid()}).encode(), 0)
        yield
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def running(state: Path) -> str:
    """The run that holds the lock of this folder now; "" when none does."""
    try:
        fd = os.open(state / "lock", os.O_RDWR)
    except OSError:
        return ""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            return str(json.loads(os.pread(fd, 4096, 0))["run"])
        except (ValueError, KeyError, TypeError):  # it has just taken the lock, and touched no node yet
            return ""
    finally:
        os.close(fd)  # drops what was taken
    return ""


def _holder(fd: int, path: Path) -> str:
    try:
        found = json.loads(os.pread(fd, 4096, 0))
        who = f"run {found['run']} (process {found['pid']})"
    except (ValueError, KeyError, TypeError):  # it has just taken the lock
        who = "another run"
    return f"{who} holds {path}; wait until it has ended, or stop that process"
