"""Which value of the intent or inventory makes which line of a device, found by trying.

Every value that a node's configuration may depend on is varied alone, in memory, and the node is
compiled anew: the lines that are gone then are the lines that this value makes. No table of what
depends on what has to be kept true, and every answer has been seen to be right: changing this value
changes this line. A value is replaced by another valid one ("value") and taken out ("presence").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from rdma_fabric import platforms, render
from rdma_fabric.findings import InputError, Position
from rdma_fabric.intent.models import WISH_KEYS, Intent
from rdma_fabric.inventory.guids import COLUMNS as GUID_COLUMNS
from rdma_fabric.inventory.guids import FILE as GUIDS
from rdma_fabric.inventory.load import CABLE_COLUMNS, CABLE_OPTIONAL, CABLES
from rdma_fabric.inventory.load import load as load_inventory
from rdma_fabric.inventory.models import Entry
from rdma_fabric.inventory.ranges import expand
from rdma_fabric.resolve import NodePlan, Resolved, load_intent, resolve
from rdma_fabric.source import Document, Row, Table, load_csv, load_yaml, validate
from rdma_fabric.templating import source

INTENT: Final = "fabric.yaml"
_TREES: Final = ("hosts.yaml", "groups.yaml", "defaults.yaml")
_INTENT_KEYS: Final = frozenset((*WISH_KEYS, "networks", "overrides", "absent"))
_ENTRY_KEYS: Final = frozenset(("data", "groups"))
_NOT_CONFIGURATION: Final = frozenset(("vars", "lab_seed", "rack"))
Place = tuple[Any, ...]
"""A place in a YAML file: keys and list indices. In a table: (line, column), or (line,) for the row."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a compiled file."""

    file: str
    number: int
    text: str
    section: tuple[str, ...]
    """The less indented lines that it stands below, outermost first."""
    template: str
    fixed: bool
    """The template has this line as it is: no value is in it, values only decide whether it is there."""
    copy: int = 0
    """How many equal lines stand before it in this section."""

    @property
    def key(self) -> tuple[str, tuple[str, ...], str, int]:
        """What is compared between two compilations; numbers and trailing commas are not."""
        return (self.file, self.section, self.text.strip().rstrip(","), self.copy)


@dataclass(frozen=True, slots=True)
class Cause:
    """A value of a source file that makes lines of a node."""

    position: Position
    setting: str
    """Dotted path in its file: classes.roce.dscp.0, leaf.data.version, length_m."""
    value: str
    how: Literal["value", "presence"]
    """value: another value changes the lines; presence: without it they are gone."""
    tried: str
    """The other value that was tried; "" for none."""
    file: str
    path: Place
    lines: frozenset[int]
    """Indices into `Traced.lines`."""


@dataclass(frozen=True, slots=True)
class Traced:
    """All lines of a node, and what makes them, the most particular cause first."""

    lines: tuple[Line, ...]
    causes: tuple[Cause, ...]

    def of(self, index: int, *, general: bool = True) -> tuple[Cause, ...]:
        """What makes this line; causes by value before those by presence. Empty: nothing alone does.

        Without `general` values that make all lines of the file (the platform's version, the transport)
        are left out where others make this one.
        """
        found = [one for one in self.causes if index in one.lines]
        direct = {(one.file, one.path) for one in found if one.how == "value"}
        found = [one for one in found if one.how == "value" or (one.file, one.path) not in direct]
        if general:
            return tuple(found)
        file = self.lines[index].file
        whole = {number for number, line in enumerate(self.lines) if line.file == file}
        return tuple(one for one in found if not whole <= one.lines) or tuple(found)


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of a fabric as read, not yet merged."""

    directory: Path
    intent: Document
    files: Mapping[str, Document | Table]

    @classmethod
    def read(cls, directory: Path) -> Sources:
        """InputError as the loaders raise it."""
        found: dict[str, Document | Table] = {}
        for name in _TREES:
            if name == "hosts.yaml" or (directory / name).exists():
                found[name] = load_yaml(directory / name)
        found[CABLES] = load_csv(directory / CABLES, CABLE_COLUMNS, CABLE_OPTIONAL)
        if (directory / GUIDS).exists():
            found[GUIDS] = load_csv(directory / GUIDS, GUID_COLUMNS)
        return cls(directory, load_intent(directory / INTENT)[1], found)

    def resolved(self) -> Resolved:
        """The fabric of these sources; InputError when they are not valid."""
        inventory = load_inventory(self.directory, platforms.bases(), platforms.nics(), self.files)
        return resolve(validate(Intent, self.intent), self.intent, inventory)

    def around(self, node: str) -> Sources:
        """Only what one node's configuration can depend on: its own entry and those of its cables' rows."""
        cables = self.files[CABLES]
        assert isinstance(cables, Table)
        ends = (CABLE_COLUMNS.index("a_node"), CABLE_COLUMNS.index("b_node"))
        names = {node}
        rows = []
        for row in cables.rows:
            here = {name for end in ends for name in expand(row.cells[end])}
            if node in here:
                rows.append(row)
                names |= here
        hosts = self.files["hosts.yaml"]
        assert isinstance(hosts, Document)
        kept = {key: value for key, value in hosts.data.items() if not names.isdisjoint(expand(key))}
        files = {
            **self.files,
            "hosts.yaml": replace(hosts, data=kept),
            CABLES: replace(cables, rows=tuple(rows)),
        }
        return replace(self, files=files)

    def chain(self, node: str) -> tuple[str, ...]:
        """The key of the node's entry in hosts.yaml, then its groups."""
        hosts, groups = self.files["hosts.yaml"], self.files.get("groups.yaml")
        assert isinstance(hosts, Document)
        entry = next(key for key in hosts.data if node in expand(key))
        found: list[str] = []
        todo = list((hosts.data[entry] or {}).get("groups", ()))
        while todo and isinstance(groups, Document):
            name = todo.pop(0)
            if name not in found:
                found.append(name)
                todo += (groups.data.get(name) or {}).get("groups", ())
        return (entry, *found)

    def document(self, file: str) -> Document | Table:
        """One file by name."""
        return self.intent if file == INTENT else self.files[file]

    def varied(self, file: str, path: Place, value: Any) -> Sources:
        """With another value at one place; `_GONE` takes the place out."""
        found = self.document(file)
        if isinstance(found, Table):
            return replace(self, files={**self.files, file: _table_with(found, path, value)})
        changed = replace(found, data=_with(found.data, path, value))
        if file == INTENT:
            return replace(self, intent=changed)
        return replace(self, files={**self.files, file: changed})


_GONE: Final = object()


def lines_of(plan: NodePlan) -> tuple[Line, ...]:
    """All lines of a node's files that say something."""
    wanted = platforms.realize(plan.state, plan.hardware).state
    found: list[Line] = []
    for file in render.files(wanted, plan.hardware):
        found.extend(_lines(file.path, file.text, file.template))
    return tuple(found)


def _lines(file: str, text: str, template: str) -> Iterator[Line]:
    literal = _literal(template)
    above: list[tuple[int, str]] = []
    seen: Counter[Any] = Counter()
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw.strip(" \t{}[],!"):
            continue
        indent = len(raw) - len(raw.lstrip())
        while above and above[-1][0] >= indent:
            above.pop()
        section = tuple(one for _, one in above)
        what = (section, raw.strip().rstrip(","))
        yield Line(file, number, raw, section, template, raw.strip() in literal, seen[what])
        seen[what] += 1
        above.append((indent, raw.strip().rstrip(",")))


@cache
def _literal(template: str) -> frozenset[str]:
    """Lines of a template in which nothing is filled in."""
    lines = source(template).splitlines()
    return frozenset(line.strip() for line in lines if "{{" not in line and "{%" not in line)


def trace(sources: Sources, resolved: Resolved, node: str, at: Position | None = None) -> Traced:
    """All lines of a node with their causes, most particular first. `resolved` is what `sources` give.

    `at`: only causes that stand in this line of this file (its column does not matter).
    """
    # The subnet manager of an InfiniBand network knows all nodes: then nothing is left out.
    near = sources if resolved.subnets else sources.around(node)
    plan = near.resolved().plans[node]
    lines = lines_of(plan)
    places = [one for one in _places(near, node) if at is None or _stands(near, *one, at)]
    found = [one for file, path in places for one in _causes(near, node, plan, lines, file, path)]
    found.sort(key=lambda one: (one.how != "value", len(one.lines), one.file, str(one.path)))
    return Traced(lines, tuple(found))


def _stands(sources: Sources, file: str, path: Place, at: Position) -> bool:
    position, _ = _named(sources.document(file), path)
    return position.line == at.line and Path(position.file) == Path(at.file)


def _causes(
    sources: Sources, node: str, plan: NodePlan, lines: tuple[Line, ...], file: str, path: Place
) -> Iterator[Cause]:
    """What a value makes: the first valid other value that changes a line, and what goes without it."""
    value = _at(sources.document(file), path)
    tries: list[tuple[Literal["value", "presence"], Iterable[Any]]] = [("presence", (_GONE,))]
    if not isinstance(value, dict | list) and value is not _GONE:
        tries.insert(0, ("value", variants(value)))
    for how, others in tries:
        for other in others:
            gone = _lost(sources.varied(file, path, other), node, plan, lines)
            if gone:
                position, setting = _named(sources.document(file), path)
                tried = "" if other is _GONE else _shown(other)
                yield Cause(position, setting, _shown(value), how, tried, file, path, gone)
                break


def _lost(sources: Sources, node: str, plan: NodePlan, lines: tuple[Line, ...]) -> frozenset[int]:
    """Indices of the lines that these sources do not make; empty also when they are not valid."""
    try:
        now = sources.resolved().plans.get(node)
    except InputError:
        return frozenset()
    if now is None or (now.state == plan.state and now.hardware == plan.hardware):
        return frozenset()
    kept = {line.key for line in lines_of(now)}
    return frozenset(index for index, line in enumerate(lines) if line.key not in kept)


# -- places


def _places(sources: Sources, node: str) -> Iterator[tuple[str, Place]]:
    """Everything in the sources that this node's configuration may depend on."""
    for key in sources.intent.data:
        if key in _INTENT_KEYS:
            yield from ((INTENT, path) for path in _walk(sources.intent.data[key], (key,)))
    entry, *groups = sources.chain(node)
    for file, keys in (("hosts.yaml", [entry]), ("groups.yaml", groups)):
        for key in keys:
            yield from ((file, path) for path in _entry(sources.files.get(file), (key,)))
    yield from (("defaults.yaml", path) for path in _entry(sources.files.get("defaults.yaml"), ()))
    for name, column in ((CABLES, "length_m"), (GUIDS, "guid")):
        table = sources.files.get(name)
        for row in table.rows if isinstance(table, Table) else ():
            yield name, (row.line, column)
            yield name, (row.line,)


def _entry(file: Document | Table | None, at: Place) -> Iterator[Place]:
    if not isinstance(file, Document):
        return
    data = file.data
    for key in at:
        data = data[key]
    for key, below in (data or {}).items():
        if key in _ENTRY_KEYS:
            yield from (path for path in _walk(below, (*at, key)) if _NOT_CONFIGURATION.isdisjoint(path))


def _walk(value: Any, path: Place) -> Iterator[Place]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from _walk(below, (*path, key))
    yield path


def _at(file: Document | Table, path: Place) -> Any:
    if isinstance(file, Table):
        row = next(row for row in file.rows if row.line == path[0])
        if len(path) == 1:
            return list(row.cells)
        return row.cells[file.columns.index(path[1])] or _GONE
    value: Any = file.data
    for key in path:
        value = value[key]
    return value


def _named(file: Document | Table, path: Place) -> tuple[Position, str]:
    if isinstance(file, Table):
        row = next(row for row in file.rows if row.line == path[0])
        column = path[1] if len(path) > 1 else ""
        return file.position(row, column), column or "row"
    value = _at(file, path)
    at = file.key_position(path) if isinstance(value, dict | list) else file.position(path)
    return at, ".".join(map(str, path))


def _with(data: Any, path: Place, value: Any) -> Any:
    """A copy of nested data that differs at one place; what is not on the way is shared."""
    if not path:
        return value
    key, *rest = path
    if isinstance(data, list):
        if not rest and value is _GONE:
            return [one for index, one in enumerate(data) if index != key]
        return [_with(one, tuple(rest), value) if index == key else one for index, one in enumerate(data)]
    if not rest and value is _GONE:
        return {name: below for name, below in data.items() if name != key}
    return {name: _with(below, tuple(rest), value) if name == key else below for name, below in data.items()}


def _table_with(table: Table, path: Place, value: Any) -> Table:
    if len(path) == 1:
        return replace(table, rows=tuple(row for row in table.rows if row.line != path[0]))
    place = table.columns.index(path[1])

    def changed(row: Row) -> Row:
        cells = list(row.cells)
        cells[place] = "" if value is _GONE else str(value)
        return replace(row, cells=tuple(cells))

    return replace(table, rows=tuple(changed(row) if row.line == path[0] else row for row in table.rows))


# -- other values

_NUMBER: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z%]*)")


def variants(value: Any) -> Iterator[Any]:
    """Other values of the same kind, of which at least one should be valid where this one is."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1, value * 2, value // 2)
        yield from (one for one in (256, 512, 1024, 2048, 4096, 9000) if one != value)
    elif isinstance(value, str):
        yield from _texts(value)


def _texts(value: str) -> Iterator[str | int]:
    yield from _words().get(value, ())
    number = _NUMBER.fullmatch(value)
    if number and "." not in number[1]:
        for other in (int(number[1]) + 1, int(number[1]) - 1, int(number[1]) * 2, int(number[1]) // 2):
            yield f"{other}{number[2]}"
    elif number:
        yield f"{float(number[1]) + 1:g}{number[2]}"
    if value == "max":
        yield 9000
    elif value == "auto":
        yield "150KB"
    yield f"{value}1"
    yield f"{value} 1"


@cache
def _words() -> Mapping[str, tuple[str, ...]]:
    """Word -> the other words that the schemas of intent and inventory allow in its place."""
    found: dict[str, dict[str, None]] = {}
    for words in (*_enums(Intent.model_json_schema()), *_enums(Entry.model_json_schema())):
        for word in words:
            found.setdefault(word, {}).update(dict.fromkeys(one for one in words if one != word))
    return {word: tuple(others) for word, others in found.items()}


def _enums(schema: Any) -> Iterator[list[str]]:
    if isinstance(schema, dict):
        words = [one for one in schema.get("enum", ()) if isinstance(one, str)]
        if len(words) > 1:
            yield words
        for below in schema.values():
            yield from _enums(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from _enums(below)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(map(str, value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return "" if value is _GONE or value is None else str(value)


__all__ = ["Cause", "Line", "Sources", "Traced", "lines_of", "trace", "variants"]
