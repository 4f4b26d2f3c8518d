"""JSON patch (RFC 6902): what SONiC's `config apply-patch` takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class PatchError(Exception):
    """An operation that RFC 6902 calls an error: unknown operation, missing target, failed test."""


def apply_patch(document: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a patched copy of a JSON object (a config_db); raises PatchError, the original never changes."""
    result: Json = json.loads(json.dumps(document))
    for operation in operations:
        result = _apply(result, operation)
    if not isinstance(result, dict):
        raise PatchError("the patch leaves no JSON object")
    return result


def _apply(document: Json, operation: Mapping[str, Any]) -> Json:
    kind, path = operation["op"], _pointer(operation["path"])
    if kind == "remove":
        return _remove(document, path)[0]
    if kind == "test":
        if _get(document, path) != operation["value"]:
            raise PatchError(f"test failed at {operation['path']}")
        return document
    if kind == "move":
        shorter, value = _remove(document, _pointer(operation["from"]))
        return _add(shorter, path, value)
    if kind == "replace":
        return _add(_remove(document, path)[0], path, operation["value"])
    if kind == "copy":
        return _add(document, path, _get(document, _pointer(operation["from"])))
    if kind == "add":
        return _add(document, path, operation["value"])
    raise PatchError(f"unknown operation {kind!r}")


def _pointer(path: Json) -> list[str]:
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise PatchError(f"{path!r} is not a JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _index(target: list[Json], part: str, limit: int) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]*", part) or int(part) >= limit:
        raise PatchError(f"no element {part!r} in a list of {len(target)}")
    return int(part)


def _get(document: Json, path: Sequence[str]) -> Json:
    for part in path:
        if isinstance(document, list):
            document = document[_index(document, part, len(document))]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            raise PatchError(f"nothing at {part!r}")
    return document


def _remove(document: Json, path: Sequence[str]) -> tuple[Json, Json]:
    """Return the document without the target, and the target."""
    value = _get(document, path)
    if not path:
        return None, value
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        del parent[_index(parent, path[-1], len(parent))]
    elif isinstance(parent, dict):
        del parent[path[-1]]
    return document, value


def _add(document: Json, path: Sequence[str], value: Json) -> Json:
    copied: Json = json.loads(json.dumps(value))
    if not path:
        return copied
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        place = len(parent) if path[-1] == "-" else _index(parent, path[-1], len(parent) + 1)
        parent.insert(place, copied)
    elif isinstance(parent, dict):
        parent[path[-1]] = copied
    else:
        raise PatchError(f"{path[-1]!r} cannot be added to a plain value")
    return document
