"""How the run reaches nodes. The run knows jobs and outcomes; what carries them out is behind `Reach`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._contract import Change, Dialect
from rdma_fabric.push.journal import Play
from rdma_fabric.state import NodeState, Observation


@dataclass(frozen=True, slots=True)
class Job:
    """One node's part of a wave. `seen`: the evidence digest that the change was computed from."""

    node: str
    change: Change
    hardware: Hardware
    dialect: Dialect
    channel: str
    seen: str
    before: NodeState | None = None
    """Own settings before the change: what an undo must bring back; None when nobody knows."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one phase on one node; `text` holds the device's own words when it failed."""

    ok: bool
    text: str = ""
    where: str = ""
    """connect | changed | lock | stage | commit | session | confirm | save | unlock | undo | recover."""
    kept: Mapping[str, str] = field(default_factory=dict)
    observation: Observation | None = None
    """Read back after the commit."""
    pending_reset: bool = False
    clean: bool = False
    """It failed, and the node is as it was before."""
    play: Play | None = None
    """The Ansible run that the node was in."""

    @property
    def untouched(self) -> bool:
        """True when it failed before anything could be live on the device, and nothing was left there."""
        return not self.ok and (self.clean or self.where in ("connect", "changed"))


class Reach(Protocol):
    """Carries jobs out, many nodes at once; every node of the call has an outcome in the answer."""

    def commit(self, jobs: Mapping[str, Job], run: str, timer_s: int) -> Mapping[str, Outcome]:
        """Look again, lock, stage, commit, read back."""

    def confirm(self, jobs: Mapping[str, Job], run: str) -> Mapping[str, Outcome]:
        """Confirm, save, unlock; where that failed, `clean` says that the change is gone again."""

    def undo(self, jobs: Mapping[str, Job], run: str) -> Mapping[str, Outcome]:
        """Undo, unlock, read back."""

    def recover(self, jobs: Mapping[str, Job], run: str) -> Mapping[str, Outcome]:
        """Drop what a run that died left on the nodes."""
