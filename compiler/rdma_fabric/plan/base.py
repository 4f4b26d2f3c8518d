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


Kind = Literal["changed", "added", "removed", "renamed", "rendered"]
"""renamed: another name at the same address; rendered: other text for the same settings."""


@dataclass(frozen=True, slots=True)
class BaseChange:
    """What changes on a group of nodes alike."""

    kind: Kind
    nodes: tuple[str, ...]
    settings: tuple[Deviation, ...] = ()
    lines: tuple[str, ...] = ()
    """Unified diff of the compiled files."""
    was: tuple[str, ...] = ()
    """Renamed nodes: their old names, in the same order."""


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


def committed(directory: Path, revision: str, path: str) -> bytes | None:
    """A file of a git revision, by its path below `directory`; None when the revision has none there."""
    top = _git(directory, revision, "rev-parse", "--show-prefix").decode().strip()
    try:
        return _git(directory, revision, "show", f"{revision}:{top}{path}")
    except InputError:
        return None


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
    moved = renamed(old, new)
    gone = set(moved.values())
    rows: dict[Any, list[str]] = {}
    kept: dict[Any, BaseChange] = {}
    cache: dict[Any, BaseChange] = {}
    for name in names:
        if name in gone:
            continue
        was = moved.get(name, name)
        key: Any = (id(before.get(was)), id(after.get(name)), id(old.views.get(was)), id(new.views.get(name)))
        if key not in cache or was != name:
            cache[key] = _change(name, was, old, new, before, after)
        one = cache[key]
        if one.kind == "changed" and not one.settings and not one.lines:
            continue
        group = (one.kind, one.settings, one.lines)
        rows.setdefault(group, []).append(name)
        kept[group] = one
    return tuple(
        BaseChange(
            kept[group].kind,
            tuple(found),
            kept[group].settings,
            kept[group].lines,
            tuple(moved[name] for name in found) if kept[group].kind == "renamed" else (),
        )
        for group, found in rows.items()
    )


def renamed(old: Judged, new: Judged) -> dict[str, str]:
    """New name -> old name of nodes that are at the same address under another name."""
    before, after = old.inventory.nodes, new.inventory.nodes
    lost = {node.hostname: name for name, node in before.items() if name not in after}
    found = {}
    for name, node in after.items():
        was = lost.get(node.hostname) if name not in before and node.hostname != name else None
        if was is not None and before[was].spec.platform == node.spec.platform:
            found[name] = was
    return found


def _change(
    name: str,
    was: str,
    old: Judged,
    new: Judged,
    before: Mapping[str, tuple[File, ...]],
    after: Mapping[str, tuple[File, ...]],
) -> BaseChange:
    lines = _diff(before.get(was, ()), after.get(name, ()))
    if was not in old.views or name not in new.views:
        return BaseChange("added" if name in new.views else "removed", (name,), (), lines)
    then, now = old.views[was].wanted, new.views[name].wanted
    kind: Kind = "changed" if was == name else "renamed"
    return BaseChange(kind, (name,), deviations(differences(now, then), now, then), lines)


def _diff(old: tuple[File, ...], new: tuple[File, ...]) -> tuple[str, ...]:
    before, after = ({one.path: one.text for one in files if not one.derived} for files in (old, new))
    lines: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        a, b = before.get(path, ""), after.get(path, "")
        if a != b:
            names = (path if path in before else "/dev/null", path if path in after else "/dev/null")
            lines += (f"--- {names[0]}", f"+++ {names[1]}", *hunks(a.splitlines(), b.splitlines()))
    return tuple(lines)


def hunks(a: list[str], b: list[str]) -> Iterator[str]:
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
