"""The pull-request view: what the difference between two intents means on every node, no device asked."""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from rdma_fabric.checker import Judged
from rdma_fabric.findings import InputError, Position, input_finding
from rdma_fabric.plan.applied import INPUT_FILES
from rdma_fabric.render import File, compile_fabric
from rdma_fabric.settings import Deviation, deviations
from rdma_fabric.state import differences

_CONTEXT: Final = 2
"""Equal lines shown around a change."""
_EXACT_LINES: Final = 1000
"""Longest file of which all lines are matched: well below a second."""


@dataclass(frozen=True, slots=True)
class BaseChange:
    """What changes on a group of nodes alike."""

    kind: Literal["changed", "added", "removed"]
    nodes: tuple[str, ...]
    settings: tuple[Deviation, ...] = ()
    lines: tuple[str, ...] = ()
    """Unified diff of the compiled files."""


def export(directory: Path, revision: str, into: Path) -> None:
    """The input files of `directory` as they were in a git revision; InputError when git cannot tell."""
    top = _git(directory, revision, "rev-parse", "--show-prefix").decode().strip()
    _git(directory, revision, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    listed = (
        _git(directory, revision, "ls-tree", "--full-tree", "--name-only", f"{revision}:{top}")
        .decode()
        .splitlines()
    )
    for name in INPUT_FILES:
        if name in listed:
            (into / name).write_bytes(_git(directory, revision, "show", f"{revision}:{top}{name}"))


def _git(directory: Path, revision: str, *words: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *words], capture_output=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _trouble(revision, f"git cannot be run: {error}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        if said and "not a git repository" in said[-1]:
            help = "run this where the fabric's folder is in a git work tree"
            raise _trouble(revision, f"{directory} is in no git repository", help)
        raise _trouble(revision, said[-1] if said else f"git has no revision {revision} here")
    return done.stdout


def _trouble(
    revision: str, message: str, help: str = "give a commit, branch or tag of this repository"
) -> InputError:
    return InputError([input_finding("reference", message, Position(f"--base {revision}", 0, 0), help)])


def compare(old: Judged, new: Judged, names: tuple[str, ...]) -> tuple[BaseChange, ...]:
    """Changes from `old` to `new`; nodes with equal changes are one entry."""
    before = compile_fabric(old, [name for name in names if name in old.views])
    after = compile_fabric(new, [name for name in names if name in new.views])
    rows: dict[Any, list[str]] = {}
    kept: dict[Any, BaseChange] = {}
    cache: dict[Any, BaseChange] = {}
    for name in names:
        key: Any = (
            id(before.get(name)),
            id(after.get(name)),
            id(old.views.get(name)),
            id(new.views.get(name)),
        )
        if key not in cache:
            cache[key] = _change(name, old, new, before, after)
        one = cache[key]
        if one.kind == "changed" and not one.settings and not one.lines:
            continue
        group = (one.kind, one.settings, one.lines)
        rows.setdefault(group, []).append(name)
        kept[group] = one
    return tuple(
        BaseChange(kept[group].kind, tuple(found), kept[group].settings, kept[group].lines)
        for group, found in rows.items()
    )


def _change(
    name: str,
    old: Judged,
    new: Judged,
    before: Mapping[str, tuple[File, ...]],
    after: Mapping[str, tuple[File, ...]],
) -> BaseChange:
    lines = _diff(before.get(name, ()), after.get(name, ()))
    if name not in old.views or name not in new.views:
        return BaseChange("added" if name in new.views else "removed", (name,), (), lines)
    was, now = old.views[name].wanted, new.views[name].wanted
    return BaseChange("changed", (name,), deviations(differences(now, was), now, was), lines)


def _diff(old: tuple[File, ...], new: tuple[File, ...]) -> tuple[str, ...]:
    before, after = {one.path: one.text for one in old}, {one.path: one.text for one in new}
    lines: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        a, b = before.get(path, ""), after.get(path, "")
        if a != b:
            names = (path if path in before else "/dev/null", path if path in after else "/dev/null")
            lines += (f"--- {names[0]}", f"+++ {names[1]}", *_hunks(a.splitlines(), b.splitlines()))
    return tuple(lines)


def _hunks(a: list[str], b: list[str]) -> Iterator[str]:
    """Hunks of a unified diff.

    `difflib.unified_diff` leaves lines that repeat often (every port's) out of the matching, and then shows
    equal lines as taken away and added again; matching all of them costs quadratic time.
    """
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=max(len(a), len(b)) > _EXACT_LINES)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in a[a1:a2])
                continue
            yield from (f"-{line}" for line in a[a1:a2])
            yield from (f"+{line}" for line in b[b1:b2])


def _range(start: int, stop: int) -> str:
    """First line and number of lines of a hunk; an empty range names the line before it."""
    length = stop - start
    return str(start + 1) if length == 1 else f"{start + 1 if length else start},{length}"
