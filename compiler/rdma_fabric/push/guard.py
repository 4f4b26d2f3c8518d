"""Runs a program that must not outlive the run that started it: `guard.py FD FOLDERS -- PROGRAM ...`.

FD is the reading end of a pipe whose other end only the run holds. When it closes, the run has died or given
up: the program and everything that it started are ended, and the folders are removed.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
_TRY_S: Final = 10.0  # a process that waits for a dead disk cannot be ended


def main(argv: Sequence[str]) -> int:
    """The program's exit code; 137 when it was ended."""
    cut = argv.index("--")
    pipe, folders, command = int(argv[0]), argv[1:cut], argv[cut + 1 :]
    _keep_orphans()
    child = subprocess.Popen(command, start_new_session=True)
    ended, end = os.pipe()

    def wait() -> None:
        child.wait()
        os.close(end)

    threading.Thread(target=wait, daemon=True).start()
    ready, _, _ = select.select([pipe, ended], [], [])
    if ended in ready:
        return child.wait()
    _end_all(child.pid)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return 128 + signal.SIGKILL


def _keep_orphans() -> None:
    """A descendant whose parent ends becomes our child, so that none is lost (where there is prctl(2))."""
    library = ctypes.CDLL(None)
    if hasattr(library, "prctl"):
        library.prctl(_SUBREAPER, 1, 0, 0, 0)


def _end_all(child: int) -> None:
    """Ends all descendants, also those that are started meanwhile; without /proc the child's own group."""
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    end = time.monotonic() + _TRY_S
    while (found := _descendants(os.getpid())) and time.monotonic() < end:
        for number in found:
            with suppress(OSError):  # it ended by itself, or became somebody else's (sudo)
                os.kill(number, signal.SIGKILL)
        time.sleep(0.02)


def _descendants(root: int) -> list[int]:
    """Processes below `root` that still run (proc(5): fields 3 and 4 of stat are state and parent)."""
    children: dict[int, list[int]] = {}
    over = set[int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        number = int(stat.parent.name)
        children.setdefault(int(words[1]), []).append(number)
        if words[0] in "ZX":
            over.add(number)
    found = [root]
    for number in found:
        found.extend(children.get(number, ()))
    return [number for number in found[1:] if number not in over]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
