"""The command line at a fabric whose devices are states in memory: no session, no platform."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rdma_fabric import platforms
from rdma_fabric.cli import live, main, pushing
from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._contract import Dialect, Realized, Traits
from rdma_fabric.state import NodeState, Observation
from rdma_fabric.transport.errors import Failure
from tests.support.inputs import BASES
from tests.support.plans import Bench, MemoryReach, bench


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


@dataclass
class Desk:
    """A fabric folder, its devices, and the command line."""

    folder: Path
    bench: Bench
    capture: pytest.CaptureFixture[str]
    lost: set[str] = field(default_factory=set)
    """Nodes that cannot be reached."""
    script: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    reaches: list[MemoryReach] = field(default_factory=list)

    def run(self, command: str, *words: str) -> Ran:
        """`fabric COMMAND -C folder WORDS`."""
        return self.plain(command, "-C", str(self.folder), *words)

    def plain(self, *words: str) -> Ran:
        """`fabric WORDS`."""
        self.capture.readouterr()
        code = main(words)
        out, err = self.capture.readouterr()
        assert "fault of fabric itself" not in err, err
        return Ran(code, out, err)

    def observe(
        self, _options: argparse.Namespace, _resolved: object, names: Collection[str], out: Any
    ) -> tuple[dict[str, Observation], dict[str, Failure]]:
        out.say(f"reading {len(names)} nodes ...")
        seen = self.bench.observe()
        failed = {name: Failure(name, "timeout", "no answer in 10s") for name in names if name in self.lost}
        return {name: seen[name] for name in names if name not in failed}, failed

    def reach(self, *_: object) -> MemoryReach:
        saved = self.reaches[-1].saved if self.reaches else {}
        self.reaches.append(MemoryReach(self.bench, self.script, saved=saved))
        return self.reaches[-1]

    def edit(self, old: str, new: str, file: str = "fabric.yaml") -> None:
        """Replaces a text in an input file."""
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


def desk(folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str], **files: str) -> Desk:
    """A fabric of two leaves and four hosts on which everything is as wished."""
    found = Desk(folder, bench(folder, patch, **files), capture)
    base = SimpleNamespace(
        name="test",
        part="base",
        channel="cli",
        dialect=Dialect("test", "error"),
        traits=Traits("Test", "test"),
    )

    def realize(wanted: NodeState, _hw: Hardware) -> Realized:
        return Realized(wanted)

    patch.setattr(platforms, "platform", lambda _key: base)
    patch.setattr(platforms, "bases", lambda: BASES)
    patch.setattr(platforms, "realize", realize)
    patch.setattr(platforms, "keys", lambda: BASES)
    patch.setattr(live, "observe", found.observe)
    patch.setattr(pushing, "reach", found.reach)
    return found
