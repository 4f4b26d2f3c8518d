"""Fragments of settings from different places, and their merge with the origin of every value.

The intent, a network, an override, a group, a node and a port each give a fragment of the same
nested keys. Later layers win; maps merge, lists and values replace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rdma_fabric.findings import Finding, Position, input_finding

Path = tuple[str, ...]

_OPEN_MAPS = (
    ("hosts", "sysctl"),
    ("hosts", "environment"),
    ("hosts", "limits"),
    ("dcqcn", "np"),
    ("dcqcn", "rp"),
)
"""Below these, the rest of a dotted key is one name (a sysctl key holds dots itself)."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One fragment (the intent's keys, nested) and where each path was written.

    Compared by identity: a layer is one place in one file.
    """

    data: Mapping[str, Any]
    positions: Mapping[Path, Position]
    label: str
    """What a report calls it: "network storage", "group leaf", "node gpu07", "port eth2 of gpu07"."""


@dataclass(slots=True)
class Merged:
    """The result of a merge: nested data, and for every path who wrote it."""

    data: dict[str, Any] = field(default_factory=dict)
    positions: dict[Path, Position] = field(default_factory=dict)

    def position(self, path: Iterable[Any]) -> Position | None:
        """Where `path` or its nearest written ancestor was written; pydantic's extra words are skipped."""
        parts = [str(part) for part in path]
        while parts:
            found = self.positions.get(tuple(parts)) or self.positions.get(
                tuple(part for part in parts if part != "any")
            )
            if found:
                return found
            parts.pop()
        return None


def split_dotted(key: str) -> Path:
    """("ecn", "400G", "kmax") of "ecn.400G.kmax"; a sysctl or environment name stays whole."""
    parts = key.split(".")
    for prefix in _OPEN_MAPS:
        if tuple(parts[:2]) == prefix and len(parts) > 2:
            return (*prefix, ".".join(parts[2:]))
    return tuple(parts)


def make_layer(
    data: Mapping[str, Any], where: Any, prefix: tuple[str | int, ...], label: str, *, dotted: bool = True
) -> Layer:
    """A layer from the map at `prefix` of a document; `where(path)` gives a position.

    Keys of the map may be dotted when `dotted`. Raises ValueError when two keys set the same path.
    """
    nested: dict[str, Any] = {}
    positions: dict[Path, Position] = {}
    for key, value in data.items():
        path = split_dotted(key) if dotted else (key,)
        _put(nested, path, value, key)
        for depth in range(1, len(path)):
            _note(positions, path[:depth], where((*prefix, key)))
        _positions(value, path, (*prefix, key), where, positions)
    return Layer(nested, positions, label)


def _put(nested: dict[str, Any], path: Path, value: Any, key: str) -> None:
    for part in path[:-1]:
        below = nested.setdefault(part, {})
        if not isinstance(below, dict):
            raise ValueError(f"{key} is set below {part}, which is set as a whole too")
        nested = below
    last = path[-1]
    if isinstance(value, dict) and isinstance(nested.setdefault(last, {}), dict):
        for name, below in value.items():
            _put(nested[last], (name,), below, f"{key}.{name}")
    elif last in nested:
        raise ValueError(f"{key} is set twice")
    else:
        nested[last] = value


def _positions(
    value: Any, path: Path, at: tuple[str | int, ...], where: Any, found: dict[Path, Position]
) -> None:
    _note(found, path, where(at))
    items: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(value, dict):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    for key, below in items:
        _positions(below, (*path, str(key)), (*at, key), where, found)


def _note(found: dict[Path, Position], path: Path, position: Position | None) -> None:
    if position is not None:
        found[path] = position


def merge(layers: Iterable[Layer]) -> Merged:
    """All layers over one another, weakest first."""
    merged = Merged()
    for layer in layers:
        _merge(merged.data, layer.data, (), layer, merged.positions)
    return merged


def _merge(
    into: dict[str, Any], data: Mapping[str, Any], path: Path, layer: Layer, found: dict[Path, Position]
) -> None:
    for key, value in data.items():
        here = (*path, str(key))
        old = into.get(key)
        both = isinstance(value, Mapping) and isinstance(old, dict)
        if not both and isinstance(old, dict | list):
            _forget_below(found, here)
        if isinstance(value, Mapping):
            if not both:
                into[key] = {}
            _merge(into[key], value, here, layer, found)
        else:
            into[key] = value
            if isinstance(value, list):
                _note_below(layer, here, found)
        _note(found, here, layer.positions.get(here))


def _forget_below(found: dict[Path, Position], here: Path) -> None:
    for stale in [path for path in found if path[: len(here)] == here]:
        del found[stale]


def _note_below(layer: Layer, here: Path, found: dict[Path, Position]) -> None:
    found.update((path, position) for path, position in layer.positions.items() if path[: len(here)] == here)


def remove(merged: Merged, path: Path) -> bool:
    """Takes what is at `path` out of the merge; False when nothing is there."""
    below: Any = merged.data
    for part in path[:-1]:
        below = below.get(part) if isinstance(below, dict) else None
    if not isinstance(below, dict) or path[-1] not in below:
        return False
    del below[path[-1]]
    _forget_below(merged.positions, path)
    return True


def dotted_trouble(error: ValueError, position: Position | None) -> Finding:
    """The finding for a fragment that sets one path twice."""
    return input_finding("schema", str(error), position, "keep one of the two keys")
