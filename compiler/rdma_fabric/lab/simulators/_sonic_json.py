"""JSON pointers, RFC 6902 patches and plain-text tables, as SONiC's Python tools have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

Config = dict[str, Any]
Operation = dict[str, Any]


class PatchError(Exception):
    """The patch is malformed or does not fit the document (texts of the jsonpatch library)."""


def natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """Sort key that counts digits as numbers, as natsort does."""
    return tuple((0, int(p)) if p.isdigit() else (1, p) for p in re.split(r"(\d+)", text) if p)


def ordered(config: Config) -> Config:
    """The configuration with tables, rows and fields in natural order."""
    return {key: ordered(v) if isinstance(v, dict) else v for key, v in sorted(config.items(), key=by_name)}


def by_name(item: tuple[str, Any]) -> tuple[tuple[int, int | str], ...]:
    """Sort key for the items of a dictionary: natural order of the names."""
    return natural(item[0])


def escape(part: str) -> str:
    """One reference token of a JSON pointer (RFC 6901)."""
    return part.replace("~", "~0").replace("/", "~1")


def pointer(parts: Iterable[str]) -> str:
    """The JSON pointer of a path."""
    return "".join("/" + escape(part) for part in parts)


def parts_of(path: str) -> list[str]:
    """The path of a JSON pointer; raises PatchError on bad escapes or a missing slash."""
    if path and not path.startswith("/"):
        raise PatchError("Location must start with /")
    if re.search(r"~(?![01])", path):
        raise PatchError(f"Found invalid escape {re.search(r'~.?', path).group()}")  # type: ignore[union-attr]
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def apply(document: Config, operations: Sequence[Operation]) -> Config:
    """A new document after all operations; raises PatchError with the library's own texts."""
    result = {"": deepcopy(document)}
    for operation in operations:
        _apply_one(result, operation)
    if not isinstance(result[""], dict):
        raise PatchError("the patched document is not an object")
    return result[""]


def check_format(data: object) -> list[Operation]:
    """The operations of a patch file; raises PatchError when it is no RFC 6902 patch."""
    if not isinstance(data, list):
        raise PatchError("Invalid JSON patch: a patch is a list of operations")
    for operation in data:
        if not isinstance(operation, dict) or "op" not in operation:
            raise PatchError("Operation does not contain 'op' member")
        if operation["op"] not in ("add", "remove", "replace", "move", "copy", "test"):
            raise PatchError(f"Unknown operation {operation['op']!r}")
        if not isinstance(operation.get("path"), str):
            raise PatchError("Operation must have a 'path' member")
        parts_of(operation["path"])
        if operation["op"] in ("add", "replace", "test") and "value" not in operation:
            raise PatchError("The operation does not contain a 'value' member")
        if operation["op"] in ("move", "copy") and not isinstance(operation.get("from"), str):
            raise PatchError("The operation does not contain a 'from' member")
    return data


def _parent(document: Any, path: str) -> tuple[Any, str]:
    parts = ["", *parts_of(path)]
    node = document
    for part in parts[:-1]:
        node = _member(node, part)
    return node, parts[-1]


def _member(node: Any, part: str) -> Any:
    if isinstance(node, dict):
        if part not in node:
            raise PatchError(f"member '{part}' not found in {node}")
        return node[part]
    if isinstance(node, list):
        if not part.isdigit() or int(part) >= len(node):
            raise PatchError(f"index '{part}' out of bounds")
        return node[int(part)]
    raise PatchError(f"unable to resolve '{part}' in {node!r}")


def _apply_one(document: Config, operation: Operation) -> None:
    kind, path = operation["op"], operation["path"]
    if kind in ("move", "copy"):
        node, part = _parent(document, operation["from"])
        value = deepcopy(_member(node, part))
        if kind == "move":
            _remove(document, operation["from"])
        _add(document, path, value)
    elif kind == "test":
        node, part = _parent(document, path)
        found = _member(node, part)
        if found != operation["value"]:
            raise PatchError(f"{found!r} is not equal to tested value {operation['value']!r}")
    elif kind == "remove":
        _remove(document, path)
    elif kind == "replace":
        node, part = _parent(document, path)
        if isinstance(node, dict) and part not in node:
            raise PatchError(f"can't replace a non-existent object '{part}'")
        _member(node, part)
        node[part if isinstance(node, dict) else int(part)] = deepcopy(operation["value"])
    else:
        _add(document, path, deepcopy(operation["value"]))


def _add(document: Config, path: str, value: Any) -> None:
    node, part = _parent(document, path)
    if isinstance(node, list):
        index = len(node) if part == "-" else int(part) if part.isdigit() else -1
        if not 0 <= index <= len(node):
            raise PatchError("can't insert outside of list")
        node.insert(index, value)
    elif isinstance(node, dict):
        node[part] = value
    else:
        raise PatchError(f"invalid document type {type(node)}")


def _remove(document: Config, path: str) -> None:
    node, part = _parent(document, path)
    if isinstance(node, dict) and part not in node:
        raise PatchError(f"can't remove a non-existent object '{part}'")
    _member(node, part)
    del node[part if isinstance(node, dict) else int(part)]


def diff(old: Config, new: Config) -> list[Operation]:
    """The patch from old to new as jsonpatch.from_diff builds it.

    A removed and an added member with the same value become one `move`: the updater's field
    validators see that operation and not the removal and the addition.
    """
    operations = list(_diff(old, new, ()))
    return list(_with_moves(operations))


def _diff(old: Config, new: Config, path: tuple[str, ...]) -> Iterator[Operation]:
    for key in sorted(old.keys() - new.keys(), key=natural):
        yield {"op": "remove", "path": pointer((*path, key)), "value": old[key]}
    for key in sorted(new.keys() - old.keys(), key=natural):
        yield {"op": "add", "path": pointer((*path, key)), "value": new[key]}
    for key in sorted(old.keys() & new.keys(), key=natural):
        if isinstance(old[key], dict) and isinstance(new[key], dict):
            yield from _diff(old[key], new[key], (*path, key))
        elif old[key] != new[key]:
            yield {"op": "replace", "path": pointer((*path, key)), "value": new[key]}


def _with_moves(operations: list[Operation]) -> Iterator[Operation]:
    removed: dict[str, list[int]] = {}
    added: dict[str, list[int]] = {}
    moves: dict[int, Operation] = {}
    gone: set[int] = set()
    for index, operation in enumerate(operations):
        kind = operation["op"]
        if kind == "replace":
            continue
        value = json.dumps(operation["value"], sort_keys=True)
        waiting = (removed if kind == "add" else added).get(value)
        if not waiting:
            (added if kind == "add" else removed).setdefault(value, []).append(index)
            continue
        partner = waiting.pop()
        source, target = (partner, index) if kind == "add" else (index, partner)
        moves[index] = {"op": "move", "from": operations[source]["path"], "path": operations[target]["path"]}
        gone.add(partner)
    for index, operation in enumerate(operations):
        if index in gone:
            continue
        kept = moves.get(index, operation)
        yield {"op": "remove", "path": kept["path"]} if kept["op"] == "remove" else kept


def table(rows: Sequence[Sequence[str]], headers: Sequence[str] = (), right: bool = False) -> str:
    """A text table in the `simple` format of tabulate: number columns to the right.

    `right` aligns text to the right too; a column counts as numbers when every cell is one.
    """
    count = len(headers) or max((len(row) for row in rows), default=0)
    cells = [[str(row[i]) if i < len(row) else "" for i in range(count)] for row in rows]
    widths = []
    for i in range(count):
        width = max((len(row[i]) for row in cells), default=0)
        widths.append(max(width, len(headers[i]) + 2) if headers else width)
    numeric = [bool(cells) and all(re.fullmatch(r"-?\d+", row[i]) for row in cells) for i in range(count)]
    to_right = [right or number for number in numeric]
    rule = "  ".join("-" * width for width in widths)
    lines = [_line(headers, widths, to_right), rule] if headers else [rule]
    lines += [_line(row, widths, to_right) for row in cells]
    return "\n".join(lines if headers else [*lines, rule])


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    pairs = zip(cells, widths, right, strict=True)
    return "  ".join(
        cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in pairs
    ).rstrip()
