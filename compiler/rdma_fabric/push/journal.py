"""The journal of a run: every step is written down before it is taken, and replayed after a crash.

One JSON object per line; one write and one fsync per append. Replay is a pure fold that drops a torn
last line. It holds settings of ours only, never a secret: the undo is computed from recorded own
settings or is a checkpoint on the device that is named after the run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

FILE: Final = "journal.jsonl"
VERSION: Final = 1

Phase = Literal["planned", "committing", "committed", "confirming", "undoing", "done"]
"""How far a node got. From `committing` on a crash leaves it open until `done`."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """What the journal says of one node."""

    phase: Phase = "planned"
    status: str = ""
    """Row status once done."""
    detail: str = ""
    before: Any = None
    """JSON of the own settings before the change (codec.to_json of a NodeState)."""
    wanted: Any = None
    settings: tuple[tuple[str, str, str], ...] = ()
    """(setting, found, wanted) of the change, for `fabric runs`."""
    wave: int = 0
    left: bool = False
    """The run ended, but could not drop what it had put on the device."""

    @property
    def open(self) -> bool:
        """True when the device may still hold an unconfirmed change, a candidate or a lock of the run."""
        return self.left or self.phase in ("committing", "committed", "confirming", "undoing")


@dataclass(frozen=True, slots=True)
class Play:
    """One Ansible run by its own count; nodes that took part in it share one object."""

    hosts: int
    changed: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A whole run as replayed."""

    run: str = ""
    kind: str = "apply"
    started: str = ""
    ended: str = ""
    inputs: str = ""
    lab: bool = False
    undoes: str = ""
    """Rollback runs: the run whose settings they bring back."""
    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    recovered_by: str = ""
    plays: tuple[Play, ...] = ()
    """Ansible runs, in their order."""

    @property
    def unfinished(self) -> bool:
        """True when the run died or left something on a node, and no later run has put that right."""
        return not self.recovered_by and (not self.ended or any(node.left for node in self.nodes.values()))


class Journal:
    """Appends events to one run's file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / FILE
        self._trim()
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for above in (folder, folder.parent):  # or a power cut may take the new file's name away
            _sync(above)

    def _trim(self) -> None:
        """Cuts a torn last line off, so that the next event starts on a line of its own."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        keep = data.rfind(b"\n") + 1
        if keep != len(data):
            with self.path.open("r+b") as file:
                file.truncate(keep)
                os.fsync(file.fileno())

    def append(self, events: Iterable[Mapping[str, Any]]) -> None:
        """All events in one write and one fsync; when this returns they survive a crash."""
        text = "".join(json.dumps(event, separators=(",", ":"), sort_keys=True) + "\n" for event in events)
        data = text.encode()
        while data:
            data = data[os.write(self._fd, data) :]
        os.fsync(self._fd)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read(path: Path) -> RunRecord:
    """The run as its journal tells it; an unreadable or torn tail is left out."""
    data = path.read_bytes() if path.exists() else b""
    return replay(_events(data))


def _events(data: bytes) -> Iterator[Mapping[str, Any]]:
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            return
        if isinstance(event, dict):
            yield event


def replay(events: Iterable[Mapping[str, Any]]) -> RunRecord:
    """Fold of all events over an empty record; events of a kind that it does not know are passed over."""
    record = RunRecord()
    nodes: dict[str, NodeRecord] = {}
    for event in events:
        kind = event.get("event")
        if kind == "node":
            nodes[event["node"]] = _fold_node(nodes.get(event["node"], NodeRecord()), event)
        elif kind == "start":
            keys = ("run", "kind", "inputs", "lab", "undoes")
            record = replace(record, started=event["at"], **{key: event[key] for key in keys if key in event})
        elif kind == "end":
            record = replace(record, ended=event["at"])
        elif kind == "ansible":
            play = Play(int(event["hosts"]), int(event["changed"]))
            record = replace(record, plays=(*record.plays, play))
        elif kind == "recovered":
            record = replace(record, recovered_by=event["by"])
    return replace(record, nodes=nodes)


def _fold_node(old: NodeRecord, event: Mapping[str, Any]) -> NodeRecord:
    keys = ("phase", "status", "detail", "before", "wanted", "wave", "left")
    values = {key: event[key] for key in keys if key in event}
    if "settings" in event:
        values["settings"] = tuple((str(a), str(b), str(c)) for a, b, c in event["settings"])
    return replace(old, **values)
