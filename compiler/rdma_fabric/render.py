"""Realized states -> files per node and a manifest; written only where they differ, stale ones removed.

Every distinct (state, hardware) is rendered once. No time, no host and no order of work enters the
output: two runs give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rdma_fabric import __version__, platforms
from rdma_fabric.checker import Judged
from rdma_fabric.findings import InputError
from rdma_fabric.hardware import Hardware
from rdma_fabric.source import file_error
from rdma_fabric.state import NodeState
from rdma_fabric.templating import render

MANIFEST = "manifest.json"
MANIFEST_VERSION = 1
Traces = Mapping[str, Mapping[str, str]]
"""Node -> compiled file -> the file's lines, each with the values that make it."""


@dataclass(frozen=True, slots=True)
class File:
    """One rendered file of a node."""

    path: str
    text: str
    mode: int
    template: str = ""
    """Where its text comes from: "<platform>/<file>.j2"."""
    derived: bool = False
    """As `Artifact.derived`."""

    @property
    def sha256(self) -> str:
        """Digest of the text in UTF-8."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Written:
    """What `write` did: counts of files, and the manifest's path."""

    manifest: Path
    nodes: int
    written: int
    same: int
    removed: int


def files(wanted: NodeState, hw: Hardware) -> tuple[File, ...]:
    """All files of one realized state, by path."""
    found = []
    for part, artifact in platforms.artifacts(wanted, hw):
        context = artifact.context if artifact.context is not None else part.context(wanted, hw)
        text = render(artifact.template, context)
        found.append(File(artifact.path, text, artifact.mode, artifact.template, artifact.derived))
    return tuple(sorted(found, key=lambda one: one.path))


def compile_fabric(judged: Judged, names: Iterable[str]) -> dict[str, tuple[File, ...]]:
    """Files of the named nodes; equal nodes share one tuple."""
    cache: dict[tuple[int, int], tuple[File, ...]] = {}
    found: dict[str, tuple[File, ...]] = {}
    for name in names:
        view = judged.views[name]
        key = (id(view.wanted), id(view.hw))
        if key not in cache:
            cache[key] = files(view.wanted, view.hw)
        found[name] = cache[key]
    return found


def manifest(
    judged: Judged,
    compiled: Mapping[str, tuple[File, ...]],
    rejected: Iterable[str],
    kept: Mapping[str, Any] | None = None,
    traces: Traces | None = None,
) -> str:
    """The manifest as JSON text: what was compiled, from which version, and what was rejected.

    `kept`: entries of nodes that were compiled before and are not looked at now.
    """
    nodes: dict[str, Any] = dict(kept or {})
    for name, found in compiled.items():
        hw = judged.views[name].hw
        nodes[name] = {
            "platform": hw.base,
            "parts": list(hw.parts),
            "model": hw.model,
            "version": hw.version,
            "files": {one.path: {"sha256": one.sha256, "mode": f"{one.mode:04o}"} for one in found},
        }
        if traces is not None:
            nodes[name]["traces"] = [f"{path}.trace" for path in sorted(traces[name])]
    data = {
        "version": MANIFEST_VERSION,
        "tool": __version__,
        "fabric": judged.resolved.intent.name,
        "nodes": nodes,
        "rejected": list(rejected),
    }
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def write(
    out: Path,
    judged: Judged,
    compiled: Mapping[str, tuple[File, ...]],
    rejected: Iterable[str],
    aside: Collection[str] = (),
    traces: Traces | None = None,
) -> Written:
    """Writes OUT/<node>/... and the manifest; removes files that an earlier manifest lists and this does not.

    `aside`: nodes out of scope; what an earlier run compiled for them stays. `traces`: node -> file -> text
    of a FILE.trace beside it, for people. InputError when OUT holds something that no manifest of ours
    accounts for, or cannot be written.
    """
    before, out_before = _before(out)
    kept = {name: one for name, one in before.items() if name in aside}
    old = {f"{name}/{file}" for name, one in before.items() if name not in kept for file in _listed(one)}
    out_now = (*rejected, *(name for name in out_before if name in aside))
    wanted = {f"{name}/{one.path}": one for name, found in compiled.items() for one in found}
    for name, texts in (traces or {}).items():
        wanted |= {f"{name}/{path}.trace": File(path, text, 0o644) for path, text in texts.items()}
    try:
        out.mkdir(parents=True, exist_ok=True)
        written = sum(_write(out / path, one.text, one.mode) for path, one in wanted.items())
        removed = sum(_remove(out, path) for path in sorted(old - wanted.keys()))
        _write(out / MANIFEST, manifest(judged, compiled, out_now, kept, traces), 0o644)
    except OSError as error:
        raise file_error(
            error.filename or out, error.strerror or str(error), "give a folder that can be written"
        ) from None
    return Written(out / MANIFEST, len(compiled), written, len(wanted) - written, removed)


def _listed(entry: Mapping[str, Any]) -> list[str]:
    """Everything that a manifest says of a node's folder."""
    return [*entry["files"], *entry.get("traces", ())]


def _before(out: Path) -> tuple[dict[str, Any], list[str]]:
    """Entries of the nodes and the rejected ones in the manifest that OUT holds; nothing without one."""
    path = out / MANIFEST
    if not path.exists():
        if out.is_dir() and any(out.iterdir()):
            raise file_error(
                out, "is not empty and holds no manifest of ours", "give an empty or a new folder"
            )
        return {}, []
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        for name, one in data["nodes"].items():
            for file in _listed(one):
                _safe(f"{name}/{file}")
        return data["nodes"], list(map(str, data["rejected"]))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = f"is not a manifest of ours ({error})"
        raise file_error(path, reason, "give another folder, or empty this one") from None


def _safe(path: str) -> None:
    parts = PurePosixPath(path).parts
    if PurePosixPath(path).is_absolute() or ".." in parts or "\0" in path:
        raise ValueError(f"path {path!r} leaves the folder")


def _write(path: Path, text: str, mode: int) -> bool:
    """True when the file was not already right."""
    data = text.encode()
    if path.is_file() and not path.is_symlink() and path.read_bytes() == data:
        if path.stat().st_mode & 0o777 != mode:
            path.chmod(mode)
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(data)
    temporary.chmod(mode)
    temporary.replace(path)
    return True


def _linked(out: Path, target: Path) -> bool:
    """True when a folder on the way is a link: what lies behind it is not ours."""
    return any(
        folder.is_symlink() for folder in target.parents if folder.is_relative_to(out) and folder != out
    )


def _remove(out: Path, path: str) -> bool:
    target = out / path
    if not (target.is_file() or target.is_symlink()) or _linked(out, target):
        return False
    target.unlink()
    for folder in target.parents:
        if folder == out or any(folder.iterdir()):
            break
        folder.rmdir()
    return True


__all__ = ["File", "InputError", "Written", "compile_fabric", "files", "manifest", "write"]
