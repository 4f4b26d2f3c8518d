"""Programs that load the fabric: ib_write_bw of perftest between two hosts, and nccl-tests over all of them.

A program runs for a limited time (timeout(1)), and a sign of life goes to us all the while: where nobody
takes it any more, the program is ended. So nothing stays behind a lost connection or an interrupt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rdma_fabric.platforms import _host_files as host
from rdma_fabric.vitals import Load, Loaded

PATIENCE_S: Final = 15
"""For the two programs to find each other, beyond the measurement itself."""
_ROW: Final = re.compile(r"^\s*(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$", re.MULTILINE)
"""perftest: bytes, iterations, peak, average, messages; with --report_gbits in Gb/s."""
_AVERAGE: Final = re.compile(r"^#\s*Avg bus bandwidth\s*:\s*([\d.]+)\s*$", re.MULTILINE)
"""nccl-tests: GB/s."""
_WRONG: Final = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Asked:
    """Context of the script."""

    command: str
    limit: int


def script(command: str, limit_s: int) -> str:
    """The shell line that runs the program and ends it in any case."""
    return host.question("linux/load.sh.j2", Asked(command, limit_s))


def write_bw(load: Load) -> str:
    """ib_write_bw: flags of perftest 4.5 and newer."""
    words = ["ib_write_bw", "-F", "--report_gbits", "-D", str(load.seconds), "-p", str(load.tcp)]
    words += ["-d", load.device] if load.device else []
    words += ["-R"] if load.cm else ["-x", str(load.gid)] if load.gid >= 0 else []
    words += [f"--tclass={load.tos}"] if load.tos >= 0 else []
    words += [load.to] if load.to else []
    return script(" ".join(words), load.seconds + PATIENCE_S)


def bandwidth(text: str) -> Loaded:
    """Gb/s of ib_write_bw's last row."""
    early = _early(text, "ib_write_bw")
    rows = _ROW.findall(text)
    if early is not None:
        return early
    if rows and _status(text) == 0:
        return Loaded(float(rows[-1][3]))
    return Loaded(failed=_why(text))


def bus_bandwidth(text: str) -> Loaded:
    """GB/s of nccl-tests; wrong results are a failure whatever the speed."""
    early = _early(text, "the program")
    if early is not None:
        return early
    wrong, average = _WRONG.search(text), _AVERAGE.search(text)
    if wrong and int(wrong[1]):
        return Loaded(failed=f"{wrong[1]} wrong results")
    if average and _status(text) == 0:
        return Loaded(float(average[1]))
    return Loaded(failed=_why(text))


def _status(text: str) -> int:
    end = host.sections(text).get("end")
    return end.status if end else -1


def _early(text: str, program: str) -> Loaded | None:
    status = _status(text)
    if status == 127:
        return Loaded(trouble=f"the host has no {program.removeprefix('the ')}")
    return Loaded(trouble="the host did not say what came of it") if status < 0 else None


def _why(text: str) -> str:
    """The last line that the program said."""
    said = [line.strip() for line in text.partition("@@end")[0].splitlines()]
    told = [line for line in said if line.strip("~- ")]
    reason = {124: "no end in time", 137: "no end in time"}.get(_status(text), "")
    return reason or (told[-1][:160] if told else "it ended without a word")
