"""The program `fabric-check` as a module, and hosts that answer it from memory."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from rdma_fabric.assets import playbooks
from rdma_fabric.platforms import _host_probes as local
from rdma_fabric.platforms._contract import Probe

PROGRAM = playbooks() / "files" / "fabric_check.py"


@cache
def module() -> Any:
    """The program, imported without leaving bytecode beside it."""
    spec = importlib.util.spec_from_file_location("fabric_check", PROGRAM)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(found)
    finally:
        sys.dont_write_bytecode = before
    return found


@dataclass
class Says:
    """A host in memory: what its programs print (argv joined by blanks; a script by its arguments) and its
    files hold. What is not there is not there; an int is the exit code of a program that fails."""

    programs: Mapping[str, str | int] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def check(self, probes: tuple[Probe, ...], folder: Path) -> tuple[list[str], list[str]]:
        """(settings that are wrong, as "PORT SETTING: FOUND", settings that could not be judged)."""
        for path, text in self.files.items():
            (folder / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (folder / path.lstrip("/")).write_text(text, encoding="utf-8")
        wrong, unknown = self.rows(probes, folder)
        names = module().name
        return [f"{names(row)}: {row['found']}" for row in wrong], [names(row) for row in unknown]

    def rows(self, probes: tuple[Probe, ...], folder: Path) -> tuple[list[Any], list[Any]]:
        """The program's own rows."""
        (put, _) = local.puts(probes)
        data = json.loads(put.text or "")
        machine = module().Machine(str(folder), 2.0**40)
        machine.scripts = data["scripts"]
        machine.run = self._run
        found: tuple[list[Any], list[Any]] = module().check(data["probes"], machine)
        return found

    def _run(self, argv: tuple[str, ...]) -> Any:
        words = argv[4:] if argv[:2] == ("sh", "-c") else argv
        said = self.programs.get(" ".join(words))
        if said is None:
            return module().Absent(f"{argv[0]}: no such file")
        return module().Unread(f"{argv[0]}: exit {said}") if isinstance(said, int) else said
