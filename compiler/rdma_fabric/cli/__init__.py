"""The command line: one small module per command, imported only when its command runs."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from rdma_fabric import __version__

COMMANDS: Final[Mapping[str, str]] = {
    "init": "write a small intent and inventory to start from",
    "adopt": "read a running fabric and write the intent and inventory that describe it",
    "check": "prove that all nodes agree with the intent and with each other",
    "compile": "render every node's configuration into a folder",
    "observe": "read the devices (read-only) and write their states to a file",
    "diff": "show what apply would do; --base REV compares with a git revision, no device",
    "apply": "check, observe, plan, ask, push in waves, read back, confirm, save",
    "drift": "compare the devices with the intent",
    "verify": "health: counters, links, subnet managers, MTU, paths; on request tests under load",
    "admit": "may a node take work: judge it and its links now, with its neighbours",
    "rollback": "bring a run's nodes back to what they had before it",
    "runs": "what happened in earlier runs",
    "trace": "which value makes this device line, and which lines a value makes",
    "capture": "save a node's raw output without secrets, and what was understood of it",
    "support": "one archive about a run, for a bug report",
    "explain": "what a rule checks and why",
    "schema": "JSON Schema of the intent or inventory, for editors",
    "lab": "the embedded fabric: up, down, status, break, somebody, reboot ...",
    "hostkeys": "show and record the nodes' SSH host keys",
}

INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `fabric` and `rdma-fabric`; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(_overview())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        sys.stdout.write(f"fabric {__version__}\n")
        return 0
    if words[0] not in COMMANDS:
        from rdma_fabric.findings import did_you_mean

        near = did_you_mean(words[0], COMMANDS)
        sys.stderr.write(f"fabric: unknown command {words[0]!r}{f', did you mean {near}?' if near else ''}\n")
        return 2
    return _run(words[0], words[1:])


def _run(name: str, words: list[str]) -> int:
    from rdma_fabric.cli import common

    module = importlib.import_module(f"rdma_fabric.cli.{name}")
    parser = argparse.ArgumentParser(prog=f"fabric {name}", description=COMMANDS[name], allow_abbrev=False)
    module.arguments(parser)
    try:
        options = parser.parse_args(words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    return common.guarded(module.run, options)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    return (
        "fabric: one intent for a whole RDMA fabric, switches and hosts\n\n"
        f"usage: fabric COMMAND [DIR] [options]\n\n{rows}\n\n"
        "`fabric COMMAND --help` shows a command's options. Exit codes: 0 good, 1 findings, 2 trouble.\n"
    )


__all__ = ["COMMANDS", "main"]
