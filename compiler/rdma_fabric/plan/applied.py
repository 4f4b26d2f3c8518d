"""What we last applied to a node: its own settings, so that what the intent drops can be named and tidied."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from rdma_fabric import __version__
from rdma_fabric.codec import from_json, to_json
from rdma_fabric.settings import deviations
from rdma_fabric.state import UNMANAGED, NodeState, PortState, differences

INPUT_FILES = (
    *("fabric.yaml", "hosts.yaml", "groups.yaml", "defaults.yaml"),
    *("cables.csv", "guids.csv", "nornir.yaml"),
)


def inputs_digest(directory: Path, words: Iterable[str] = ()) -> str:
    """SHA-256 over everything that the wishes come from: input files, what-if words, version of the tool."""
    digest = hashlib.sha256(__version__.encode())
    for name in INPUT_FILES:
        path = directory / name
        digest.update(f"\0{name}\0".encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    for word in words:
        digest.update(f"\0{word}".encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Left:
    """A setting that we applied once and that the intent does not own any more."""

    node: str
    setting: str
    value: str


def read_applied(folder: Path, names: Iterable[str]) -> dict[str, NodeState]:
    """Last applied states by node; a node without a record, or with one that cannot be read, is left out.

    Equal records are one object.
    """
    found: dict[str, NodeState] = {}
    shared: dict[str, NodeState] = {}
    for name in names:
        try:
            text = (folder / f"{name}.json").read_text(encoding="utf-8")
            if text not in shared:
                shared[text] = from_json(NodeState, json.loads(text)["state"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        found[name] = shared[text]
    return found


def write_applied(folder: Path, run: str, states: Mapping[str, NodeState]) -> None:
    """Records what a run has proved on its nodes."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, state in states.items():
        data: dict[str, Any] = {"version": 1, "run": run, "state": to_json(state)}
        path = folder / f"{name}.json"
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(data), encoding="utf-8")
        temporary.chmod(0o600)
        temporary.replace(path)


def tidy(wanted: NodeState, applied: NodeState | None) -> NodeState:
    """`wanted`, and marking off on priorities that we once gave marking and that no class uses now.

    What a changed value replaces is ours and goes as part of that change; everything else that the intent
    dropped is left to the device (see `left`).
    """
    if applied is None:
        return wanted
    before = {port.name: port for port in applied.ports}
    ports = tuple(_tidy_port(port, before.get(port.name)) for port in wanted.ports)
    return wanted if ports == wanted.ports else replace(wanted, ports=ports)


def _tidy_port(port: PortState, before: PortState | None) -> PortState:
    if before is None:
        return port
    qos, old = port.settings.qos, before.settings.qos
    table = qos.dscp_to_priority
    used = set(table) if isinstance(table, tuple) else set(range(8))
    classes = tuple(
        replace(now, ecn=None)
        if index not in used and now.ecn is UNMANAGED and was.ecn not in (UNMANAGED, None)
        else now
        for index, (now, was) in enumerate(zip(qos.classes, old.classes, strict=True))
    )
    if classes == qos.classes:
        return port
    return replace(port, settings=replace(port.settings, qos=replace(qos, classes=classes)))


def restorable(before: NodeState, realized: NodeState) -> NodeState:
    """`before` without what its platform leaves alone even when asked (`realize` makes that UNMANAGED)."""
    found = _restorable(before, realized)
    assert isinstance(found, NodeState)
    return found


def _restorable(before: Any, realized: Any) -> Any:
    if realized is UNMANAGED or type(before) is not type(realized):
        return UNMANAGED if realized is UNMANAGED else before
    if is_dataclass(before) and not isinstance(before, type):
        named = [item.name for item in fields(before) if item.compare]
        return replace(
            before, **{name: _restorable(getattr(before, name), getattr(realized, name)) for name in named}
        )
    if isinstance(before, tuple) and len(before) == len(realized):
        return tuple(_restorable(*pair) for pair in zip(before, realized, strict=True))
    return before


def left(name: str, wanted: NodeState, applied: NodeState | None) -> tuple[Left, ...]:
    """Settings applied once that `wanted` does not own any more."""
    if applied is None:
        return ()
    gone = [
        one
        for one in differences(applied, wanted)
        if one.found is UNMANAGED and one.wanted not in (None, False)
    ]
    return tuple(Left(name, one.setting, one.wanted) for one in deviations(gone, applied, wanted))
