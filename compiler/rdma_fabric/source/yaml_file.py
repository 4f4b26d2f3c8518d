"""YAML files: one pass over the parser's events gives plain data and a tree of positions.

The parser is libyaml where PyYAML has it. Everything wrong is collected; only a syntax error ends it.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from rdma_fabric.findings import BadValue, Finding, InputError, Position, input_finding, shown
from rdma_fabric.source.scalars import resolve_plain
from rdma_fabric.source.syntax import range_word, syntax_finding
from rdma_fabric.source.text import FINDINGS_LIMIT, INVISIBLE, decode, file_error, line_excerpt, read_bytes

DataPath = tuple[str | int, ...]
"""The way to a value: keys and list indexes."""

ALIAS_LIMIT = 1_000_000
"""Nodes that aliases may add to one file; ten lines of nested aliases can otherwise ask for 10^10."""
DEPTH_LIMIT = 100
"""Maps and lists inside one another."""

# A mark is one integer, line << 25 | column, both from 0; no line is longer than SIZE_LIMIT < 2**25.
_BITS = 25
# The position tree mirrors the data. Scalar: its mark. Map: (mark, {key: (mark of the key, tree)}).
# List: (mark, [tree, ...]). An alias gets a mark of its own and shares the children of its anchor.
_Tree = Any

_Parser: Any = getattr(yaml, "CLoader", yaml.Loader)
_MERGE = object()


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One YAML file: `data` is plain dicts, lists and scalars; read-only, since aliases share parts of it."""

    data: dict[str, Any]
    positions: _Tree
    path: str
    lines: tuple[str, ...]

    def position(self, path: DataPath) -> Position:
        """Where the value at `path` stands, or its nearest ancestor that exists."""
        return _position(self.path, self._marks(path)[1])

    def key_position(self, path: DataPath) -> Position:
        """Where the key of `path` stands (a list item: the item), or its nearest ancestor that exists."""
        return _position(self.path, self._marks(path)[0])

    def _marks(self, path: DataPath) -> tuple[int, int]:
        """The marks of the key and of the value at the end of `path`."""
        tree = self.positions
        key_mark = mark = _mark(tree)
        for step in path:
            children = tree[1] if isinstance(tree, tuple) else None
            if isinstance(children, dict) and step in children:
                key_mark, tree = children[step]
                mark = _mark(tree)
            elif isinstance(children, list) and isinstance(step, int) and 0 <= step < len(children):
                tree = children[step]
                key_mark = mark = _mark(tree)
            else:
                return key_mark, key_mark
        return key_mark, mark


def _mark(tree: _Tree) -> int:
    mark: int = tree[0] if isinstance(tree, tuple) else tree
    return mark


def _start(event: Any) -> int:
    mark: int = event.start_mark.line << _BITS | event.start_mark.column
    return mark


def _position(file: str, mark: int) -> Position:
    return Position(file, (mark >> _BITS) + 1, (mark & (1 << _BITS) - 1) + 1)


def load_yaml(path: str | pathlib.Path, *, allow_empty: bool = False) -> Document:
    """The YAML file at `path`, whose top level is a map; InputError with every finding otherwise."""
    return parse_yaml(read_bytes(path), str(path), allow_empty=allow_empty)


def parse_yaml(content: bytes, file: str, *, allow_empty: bool = False) -> Document:
    """The same for content that does not lie on disk (a git revision); `file` names it in positions."""
    text = decode(content, file)
    lines = tuple(text.split("\n"))
    builder = _Builder(text, file, lines)
    try:
        data, tree = builder.document()
    except yaml.YAMLError as error:
        builder.faults.append(syntax_finding(error, text, file, lines))
        data, tree = None, 0
    if data is None and not builder.faults:
        if not allow_empty:
            raise file_error(file, "it is empty", "write at least one key, or delete the file")
        data, tree = {}, (0, {})
    if not isinstance(data, dict) and not builder.faults:
        what = "a list" if isinstance(data, list) else "a single value"
        builder.fault(
            "schema", f"the file holds {what}, not a map", _mark(tree), "start with a key: `name: value`"
        )
    if builder.faults:
        raise InputError(builder.faults)
    return Document(data, tree, file, lines)


class _Stop(Exception):
    """Ends the building after a fault that leaves nothing to go on with."""


class _Builder:
    """Builds data and position tree of one document from the parser's events, and collects the faults."""

    def __init__(self, text: str, file: str, lines: Sequence[str]) -> None:
        self.file, self.lines = file, lines
        self.faults: list[Finding] = []
        self.next: Any = _Parser(text).get_event
        self.anchors: dict[str, tuple[Any, _Tree, int]] = {}
        self.open: set[str] = set()
        self.names: set[str] = set()  # unquoted keys seen before: most keys of a file are few names
        self.count = self.added = self.depth = 0

    def document(self) -> tuple[Any, _Tree]:
        """Data and position tree of the only document; (None, 0) for a file without any."""
        self.next()  # the start of the stream
        if type(self.next()) is StreamEndEvent:
            return None, 0
        try:
            return self.only()
        except _Stop:
            return None, 0

    def only(self) -> tuple[Any, _Tree]:
        """The same, once it is there; a second document is a fault."""
        data, tree = self.value(self.next())
        self.next()  # the end of the document
        event = self.next()
        if type(event) is DocumentStartEvent:
            help = "keep one document in a file: remove the `---`"
            self.fault("yaml-syntax", "a second document starts here", _start(event), help)
        return data, tree

    def fault(self, name: str, message: str, mark: int, help: str) -> None:
        """Notes one finding at `mark`."""
        if len(self.faults) >= FINDINGS_LIMIT:
            message = f"this file has more than {FINDINGS_LIMIT} mistakes; the rest is not told"
            name, help = "yaml-syntax", "mend those above first"
        position = _position(self.file, mark)
        excerpt = line_excerpt(self.lines, position)
        self.faults.append(input_finding(name, message, position, help, excerpt=excerpt))
        if len(self.faults) > FINDINGS_LIMIT:
            raise _Stop

    def value(self, event: Any) -> tuple[Any, _Tree]:
        """Data and tree of the node that starts with `event`."""
        kind = type(event)
        self.count += 1
        if kind is ScalarEvent:
            return self.scalar(event)
        if kind is AliasEvent:
            return self.alias(event)
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            message = f"maps and lists are nested deeper than {DEPTH_LIMIT}"
            self.fault("yaml-syntax", message, _start(event), "check the brackets")
            raise _Stop
        anchor, before = event.anchor, self.count
        self.open.add(anchor)
        if event.tag:
            self.tag(event)
        data, tree = self.mapping(event) if kind is MappingStartEvent else self.sequence(event)
        self.depth -= 1
        self.open.discard(anchor)
        if anchor:
            self.anchors[anchor] = data, tree, self.count - before + 1
        return data, tree

    def scalar(self, event: Any) -> tuple[Any, int]:
        """A quoted scalar as it stands, an unquoted one as YAML 1.2 reads it."""
        mark = event.start_mark
        at = mark.line << _BITS | mark.column
        value = event.value
        if event.tag:
            self.tag(event)
        elif not event.style:
            try:
                value = resolve_plain(value)
            except BadValue as error:
                self.fault("yaml-implicit-type", error.text, at, error.help)
        elif event.style == '"' and (odd := INVISIBLE.search(value)):
            message = f"the escapes give an invisible character (U+{ord(odd.group()):04X})"
            self.fault("yaml-syntax", message, at, "remove it")
        if event.anchor:
            self.anchors[event.anchor] = value, at, 1
            if not (event.value or event.style):
                message = f"the anchor &{event.anchor} marks no value"
                self.fault("yaml-syntax", message, at, "write the value behind it, or quote the text")
        return value, at

    def tag(self, event: Any) -> None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        message = f"the tag {shown(tag)} is not supported"
        self.fault("yaml-syntax", message, _start(event), "remove it; write text in quotes")

    def alias(self, event: Any) -> tuple[Any, _Tree]:
        """What the anchor holds; its own mark is the alias, the positions below are the anchor's."""
        name, at = event.anchor, _start(event)
        if name not in self.anchors or name in self.open:
            message, help = (
                f"there is no anchor &{name} before this alias",
                f"define &{name} above, or quote the text",
            )
            if name in self.open:
                message, help = f"the alias *{name} stands inside its own anchor", "write the value out"
            self.fault("yaml-syntax", message, at, help)
            return None, at
        data, tree, size = self.anchors[name]
        self.count += size
        self.added += size
        if self.added > ALIAS_LIMIT:
            message = f"the aliases of this file repeat more than {ALIAS_LIMIT} values"
            self.fault("yaml-syntax", message, at, "do not nest aliases of aliases")
            raise _Stop
        return data, (at, tree[1]) if isinstance(tree, tuple) else at

    def sequence(self, start: Any) -> tuple[list[Any], _Tree]:
        """A list and its tree."""
        items: list[Any] = []
        trees: list[_Tree] = []
        while type(event := self.next()) is not SequenceEndEvent:
            data, tree = self.value(event)
            items.append(data)
            trees.append(tree)
        return items, (_start(start), trees)

    def mapping(self, start: Any) -> tuple[dict[str, Any], _Tree]:
        """A map and its tree; merge keys fill in what the map does not say itself."""
        data: dict[str, Any] = {}
        trees: dict[str, tuple[int, _Tree]] = {}
        merges: list[tuple[Any, _Tree]] = []
        while type(event := self.next()) is not MappingEndEvent:
            key, at = self.key(event)
            event = self.next()
            value, tree = self.value(event)
            if start.flow_style and value is None and type(event) is ScalarEvent and not event.value:
                self.without_value(key, at, _start(event))
            if key is _MERGE:
                merges.append((value, tree))
            elif key in trees:
                first = (trees[key][0] >> _BITS) + 1
                message = f"the key {shown(key)} appears twice in this map (first in line {first})"
                self.fault("yaml-duplicate-key", message, at, "remove one of the two, or rename it")
            elif key is not None:
                data[key] = value
                trees[key] = at, tree
        for value, tree in merges:
            self.merge(data, trees, value, tree)
        return data, (_start(start), trees)

    def key(self, event: Any) -> tuple[Any, int]:
        """A key and its mark; _MERGE for <<, None (with a fault) for what is no name."""
        mark = event.start_mark
        at = mark.line << _BITS | mark.column
        plain = type(event) is ScalarEvent and not (event.style or event.anchor or event.tag)
        if plain and event.value in self.names:
            return event.value, at
        if plain and event.value == "<<":
            return _MERGE, at
        faults = len(self.faults)
        value, _ = self.value(event)
        if isinstance(value, str):
            if plain and len(self.faults) == faults:
                self.names.add(value)
            return value, at
        if isinstance(value, list | dict):
            written = range_word(self.lines[at >> _BITS], at & (1 << _BITS) - 1)
            help = f'quote it if it is a name: "{written}"' if "[" in written else "write a name and a colon"
            what = "list" if isinstance(value, list) else "map"
            self.fault("yaml-syntax", f"a {what} stands where a key is wanted", at, help)
        elif type(event) is ScalarEvent:
            what = "empty" if not event.value else f"the {_kind(value)} {event.value}"
            help = f'quote it: "{event.value}"' if event.value else "write the name before the colon"
            self.fault("yaml-implicit-type", f"the key is {what}, and keys are text", at, help)
            return event.value, at
        elif event.anchor in self.anchors:
            message = f"the key *{event.anchor} stands for a {_kind(value)}, and keys are text"
            self.fault("yaml-implicit-type", message, at, "write the name of the key")
        return None, at

    def without_value(self, key: Any, at: int, end: int) -> None:
        """A key inside {...} that no value follows: often the space after the colon is missing."""
        line = end >> _BITS  # behind the last line where the file ends here
        next_char = self.lines[line][end & (1 << _BITS) - 1 :][:1] if line < len(self.lines) else ""
        if not isinstance(key, str) or next_char == "[":  # an unquoted range: the parser will stop there
            return
        name, colon, value = key.partition(":")
        help = "write null if it has none" if not colon else f"put a space after the colon: `{name}: {value}`"
        self.fault("yaml-syntax", f"the key {shown(key)} has no value", at, help)

    def merge(
        self, data: dict[str, Any], trees: dict[str, tuple[int, _Tree]], value: Any, tree: _Tree
    ) -> None:
        """Adds what the map does not have yet; of several sources the first one wins."""
        sources = zip(value, tree[1], strict=True) if isinstance(value, list) else [(value, tree)]
        for source, source_tree in sources:
            if not isinstance(source, dict):
                message = "a merge key (<<) needs a map, or a list of maps"
                self.fault(
                    "yaml-syntax", message, _mark(source_tree), "name an anchor that holds a map: `<<: *name`"
                )
                continue
            for key, entry in source_tree[1].items():
                if key not in trees:
                    data[key] = source[key]
                    trees[key] = entry


def _kind(value: object) -> str:
    return "empty value" if value is None else "boolean" if isinstance(value, bool) else "number"
