"""States as JSON and back: stable, readable, complete. Absences are written as "@unknown" and so on.

Version 1 of the format; a field that a file leaves out has its default (usually unmanaged), so that
small hand-written files can be given to `check --observed`. A text that begins with @ is written with
one more @.
"""

from __future__ import annotations

import json
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast

from rdma_fabric.findings import InputError, Position, did_you_mean, input_finding
from rdma_fabric.state import DSCPS, PRIORITIES, Absent, Observation

T = TypeVar("T")
VERSION = 1
_MARKS = {f"@{absent.name.lower()}": absent for absent in Absent}


class FormatError(ValueError):
    """The JSON is not a state: `path` says where, the text what was found and wanted."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path or 'the file'}: {message}")
        self.path = path


def to_json(value: Any) -> Any:
    """Plain JSON data of a state value; fields that have their default are left out."""
    if isinstance(value, Absent):
        return f"@{value.name.lower()}"
    if is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: to_json(getattr(value, item.name))
            for item in fields(value)
            if item.compare and not _is_default(item, getattr(value, item.name))
        }
    if isinstance(value, tuple):
        if value and all(
            isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) for one in value
        ):
            return {name: to_json(one) for name, one in value}
        return [to_json(one) for one in value]
    return f"@{value}" if isinstance(value, str) and value.startswith("@") else value


def _is_default(item: Any, value: Any) -> bool:
    default = item.default
    return default is not MISSING and type(default) is type(value) and bool(default == value)


def from_json(cls: type[T], data: Any, path: str = "") -> T:
    """The value of the dataclass `cls`; FormatError names the first thing that does not fit."""
    return cast(T, _read(cls, data, path))


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _read(kind: Any, data: Any, path: str) -> Any:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _read_union(kind, data, path)
    if origin is typing.Literal:
        if data not in typing.get_args(kind):
            raise FormatError(path, f"{data!r} is not one of {', '.join(map(repr, typing.get_args(kind)))}")
        return data
    if origin is tuple:
        return _read_tuple(typing.get_args(kind), data, path)
    if isinstance(kind, type) and is_dataclass(kind):
        return _read_dataclass(kind, data, path)
    return _read_scalar(kind, data, path)


def _read_scalar(kind: Any, data: Any, path: str) -> Any:
    if kind is type(None) and data is None:
        return None
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if isinstance(kind, type) and isinstance(data, kind) and (kind is bool or not isinstance(data, bool)):
        return _read_text(data, path) if isinstance(data, str) else data
    name = getattr(kind, "__name__", str(kind))
    raise FormatError(path, f"found {json.dumps(data)[:60]}, wanted {name}")


def _read_text(data: str, path: str) -> str:
    if data.startswith("@") and not data.startswith("@@"):
        raise FormatError(
            path, f"found {json.dumps(data)[:60]}, wanted a value (a text with @ begins with @@)"
        )
    return data.removeprefix("@")


def _read_union(kind: Any, data: Any, path: str) -> Any:
    if isinstance(data, str) and data in _MARKS and Absent in typing.get_args(kind):
        return _MARKS[data]
    choices = [one for one in typing.get_args(kind) if one is not Absent]
    if data is None and type(None) in choices:
        return None
    errors: list[FormatError] = []
    for choice in choices:
        try:
            return _read(choice, data, path)
        except FormatError as error:
            errors.append(error)
    raise errors[0]


def _read_tuple(args: tuple[Any, ...], data: Any, path: str) -> tuple[Any, ...]:
    if len(args) == 2 and args[1] is Ellipsis:
        inner = typing.get_args(args[0])
        if isinstance(data, dict) and len(inner) == 2 and inner[0] is str:
            return tuple((key, _read(inner[1], data[key], f"{path}.{key}")) for key in sorted(data))
        if isinstance(data, dict) and args[0] is not str and _indexed(data):
            return _read_indexed(args[0], data, path)
        if not isinstance(data, list):
            raise FormatError(path, f"found {json.dumps(data)[:60]}, wanted a list")
        return tuple(_read(args[0], one, f"{path}[{index}]") for index, one in enumerate(data))
    if not isinstance(data, list) or len(data) != len(args):
        raise FormatError(path, f"found {json.dumps(data)[:60]}, wanted a list of {len(args)}")
    return tuple(
        _read(kind, one, f"{path}[{index}]") for index, (kind, one) in enumerate(zip(args, data, strict=True))
    )


def _indexed(data: dict[str, Any]) -> bool:
    return bool(data) and all(key.isdigit() and int(key) < 8 for key in data)


def _read_indexed(kind: Any, data: dict[str, Any], path: str) -> tuple[Any, ...]:
    """{"3": {...}} for the eight classes: the others have their defaults."""
    return tuple(_read(kind, data.get(str(index), {}), f"{path}.{index}") for index in range(8))


def _read_dataclass(kind: Any, data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise FormatError(path, f"found {json.dumps(data)[:60]}, wanted an object")
    hints = _hints(kind)
    names = {item.name: item for item in fields(kind) if item.compare}
    for key in data:
        if key not in names:
            near = did_you_mean(key, names)
            raise FormatError(
                f"{path}.{key}" if path else key, f"unknown field{f', did you mean {near}?' if near else ''}"
            )
    values = {key: _read(hints[key], value, f"{path}.{key}" if path else key) for key, value in data.items()}
    missing = [name for name, item in names.items() if _required(item) and name not in values]
    if missing:
        raise FormatError(path, f"field {missing[0]} is missing")
    for name, length in _LENGTHS.items():
        found = values.get(name)
        if isinstance(found, tuple) and len(found) != length:
            raise FormatError(f"{path}.{name}", f"found {len(found)} entries, wanted {length}")
    return kind(**values)


_LENGTHS = {"classes": len(PRIORITIES), "dscp_to_priority": len(DSCPS), "pcp_to_priority": len(PRIORITIES)}
"""Fields that hold one entry per priority or code point."""


def _required(item: Any) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def dump_observations(found: dict[str, Observation]) -> str:
    """The file of `observe -o`: one observation per node, in the given order."""
    data = {"version": VERSION, "nodes": {name: to_json(one) for name, one in found.items()}}
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def load_observations(text: str, file: str) -> dict[str, Observation]:
    """What `dump_observations` wrote, or a hand-written file; InputError says what is wrong."""
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        raise _wrong(f"not JSON: {error}", Position(file, line, column)) from None
    except RecursionError:
        raise _wrong("nested too deeply", Position(file, 1, 1)) from None
    at = Position(file, 0, 0)
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), dict):
        raise _wrong('no "nodes" object', at)
    if data.get("version") != VERSION:
        raise _wrong(f"version {data.get('version')!r} is not {VERSION}", at)
    found: dict[str, Observation] = {}
    for name, one in data["nodes"].items():
        try:
            found[name] = from_json(Observation, one, f"nodes.{name}")
        except FormatError as error:
            raise _wrong(str(error), at) from None
    return found


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number that JSON knows")


def _wrong(message: str, position: Position) -> InputError:
    return InputError(
        [input_finding("file", message, position, "give a file that `fabric observe -o` wrote")]
    )


__all__ = [
    "VERSION",
    "FormatError",
    "dump_observations",
    "from_json",
    "load_observations",
    "to_json",
]
