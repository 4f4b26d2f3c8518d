"""A change of a host as one JSON value that the program on the host carries out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, Literal

from rdma_fabric.assets import playbooks
from rdma_fabric.platforms._contract import RUN, TIMER_HMS, TIMER_S, Change, Put, Send, Step

VERSION: Final = 1
Mode = Literal["check", "apply", "confirm", "undo", "recover"]


def bundle(change: Change, run: str, timer_s: int, mode: Mode) -> dict[str, Any]:
    """The bundle of a change of channel "files": its steps, their undo and the program that runs them.

    Keys: version, run, timer_s, mode, steps (lock, stage, commit), confirm (confirm, save, unlock), undo,
    program. Equal changes of one run give equal bundles. ValueError for a step that only a CLI has.
    """

    def fill(text: str) -> str:
        clock = f"{timer_s // 3600:02d}:{timer_s // 60 % 60:02d}:{timer_s % 60:02d}"
        return text.replace(RUN, run).replace(TIMER_S, str(timer_s)).replace(TIMER_HMS, clock)

    def steps(found: Iterable[Step]) -> list[dict[str, Any]]:
        # Parts of one host share files; a repeated call may be needed after each of them.
        kept: list[Step] = []
        for step in found:
            if not (isinstance(step, Put) and step in kept):
                kept.append(step)
        return [_step(step, fill) for step in kept]

    return {
        "version": VERSION,
        "run": run,
        "timer_s": timer_s,
        "mode": mode,
        "steps": steps((*change.lock, *change.stage, *change.commit)),
        "confirm": steps((*change.confirm, *change.save, *change.unlock)),
        "undo": steps(change.undo),
        "program": program(),
    }


@cache
def program() -> str:
    """Text of the program that carries bundles out; it travels in every bundle."""
    return (playbooks() / "files" / "fabric_host.py").read_text(encoding="utf-8")


def _step(step: Step, fill: Callable[[str], str]) -> dict[str, Any]:
    if isinstance(step, Send):
        raise ValueError(f"a host has no command line to type {step.lines[:1]} into")
    if isinstance(step, Put):
        text = None if step.text is None else fill(step.text)
        put = {"path": fill(step.path), "text": text, "mode": step.mode, "owner": step.owner}
        return {"put": put | ({"was": step.was} if step.was else {})}
    call = {
        "argv": [fill(word) for word in step.argv],
        "status": list(step.status),
        "timeout_s": step.timeout_s,
        "unless": [fill(word) for word in step.unless],
    }
    return {"call": call | ({"late": True} if step.late else {})}
