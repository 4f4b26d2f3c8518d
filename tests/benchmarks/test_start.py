"""How long a command takes before it does anything: `fabric --help`, and `check` on an example, cold.

CPU seconds of a fresh process (user + system) beside those of a bare interpreter, so that the figures can
be compared between machines as ratios. Printed, never asserted.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNS = 5
_MAIN = "import sys; from rdma_fabric.cli import main; sys.exit(main(sys.argv[1:]))"


def _cpu(*words: str) -> float:
    """The least CPU seconds of a few runs."""
    found = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


@pytest.mark.benchmark
def test_start(capsys: pytest.CaptureFixture[str]) -> None:
    bare = _cpu("-c", "pass")
    rows = {
        "python -c pass": bare,
        "fabric --help": _cpu("-c", _MAIN, "--help"),
        "fabric check inventory/demo": _cpu("-c", _MAIN, "check", str(ROOT / "inventory" / "demo")),
        "fabric check inventory/gpu-pod": _cpu("-c", _MAIN, "check", str(ROOT / "inventory" / "gpu-pod")),
    }
    with capsys.disabled():
        sys.stdout.write("\n")
        for name, seconds in rows.items():
            sys.stdout.write(f"{name:<32} {seconds:6.3f} s  {seconds / bare:5.1f} x a bare interpreter\n")
