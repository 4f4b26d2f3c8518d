"""CSV files with a header line, read strictly; the position of every cell can be asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rdma_fabric.findings import Finding, InputError, Position, did_you_mean, input_finding, shown
from rdma_fabric.source.text import FINDINGS_LIMIT, decode, line_excerpt, read_bytes

_CELL = re.compile(r'[ \t]*(?:"((?:[^"]|"")*)"[ \t]*|([^",]*))(,|\Z)')


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; `cells` in the order of the table's columns, without the spaces around them."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One CSV file; an optional column that the file does not have gives empty cells."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    path: str
    lines: tuple[str, ...]
    places: tuple[int, ...]
    """For each column its place in the file, -1 where the file does not have it."""

    def position(self, row: Row, column: str = "") -> Position:
        """Where the cell of `row` starts; the start of the line without a column."""
        place = self.places[self.columns.index(column)] if column else -1
        starts = _split(self.lines[row.line - 1])[0] if place >= 0 else []
        return Position(self.path, row.line, starts[place] + 1 if starts else 1)


def load_csv(path: str | Path, columns: Sequence[str], optional: Sequence[str] = ()) -> Table:
    """The table at `path`: `columns` must be there and filled, `optional` ones may be absent or empty."""
    missing = f"create it with the first line `{','.join([*columns, *optional])}`"
    return parse_csv(read_bytes(path, missing), str(path), columns, optional)


def parse_csv(content: bytes, file: str, columns: Sequence[str], optional: Sequence[str] = ()) -> Table:
    """The same for content that does not lie on disk (a git revision); `file` names it in positions."""
    return _Reader(decode(content, file), file, tuple(columns), tuple(optional)).table()


def _split(line: str) -> tuple[list[int], list[str], int]:
    """Starts and texts of the cells of a line, and the index of a misplaced quote (-1: none)."""
    starts: list[int] = []
    texts: list[str] = []
    end, more = 0, True
    while more:
        match = _CELL.match(line, end)
        if not match:
            return starts, texts, line.find('"', end)
        quoted = match[1] is not None
        starts.append(match.start(1) - 1 if quoted else match.start(2))
        texts.append(match[1].replace('""', '"').strip() if quoted else match[2].strip())
        end, more = match.end(), match[3] == ","
    return starts, texts, -1


class _Reader:
    """Reads one table and collects the faults of all lines."""

    def __init__(self, text: str, file: str, columns: tuple[str, ...], optional: tuple[str, ...]) -> None:
        self.lines = tuple(text.split("\n"))
        self.file, self.columns, self.optional = file, columns, optional
        self.faults: list[Finding] = []

    def table(self) -> Table:
        """The table, or InputError with every fault."""
        used = [(n, line) for n, line in enumerate(self.lines, 1) if line.strip() and line.lstrip()[0] != "#"]
        wanted = ",".join([*self.columns, *self.optional])
        if not used:
            self.fault("the file holds no header line", 1, 0, f"start it with the line `{wanted}`")
            raise InputError(self.faults)
        header = self.header(*used[0])
        places = tuple(header.index(name) if name in header else -1 for name in self.columns + self.optional)
        if self.too_short(used, len(header)):
            raise InputError(self.faults)
        rows = list(self.rows(used[1:], len(header), places))
        if self.faults:
            raise InputError(self.faults)
        return Table(self.columns + self.optional, tuple(rows), self.file, self.lines, places)

    def too_short(self, used: list[tuple[int, str]], width: int) -> bool:
        """True, with one fault, when every line has the same number of fields, more than the header."""
        found = {len(_split(line)[1]) for _, line in used[1:]} if len(used) > 2 else set()
        if len(found) != 1 or min(found) <= width:
            return False
        number, line = used[0]
        known = ",".join([*self.columns, *self.optional])
        message = f"the header has {width} columns, every line below it {min(found)}"
        self.fault(message, number, len(line.rstrip()), f"name all columns: {known}")
        return True

    def rows(self, used: Iterable[tuple[int, str]], width: int, places: tuple[int, ...]) -> Iterator[Row]:
        """The rows that can be used; stops when there are too many faults to tell."""
        for number, line in used:
            if len(self.faults) >= FINDINGS_LIMIT:
                message = f"this file has more than {FINDINGS_LIMIT} mistakes; the rest is not told"
                self.fault(message, number, 0, "mend those above first")
                return
            row = self.row(number, line, width, places)
            if row:
                yield row

    def fault(self, message: str, line: int, column: int, help: str) -> None:
        """Notes one finding; `line` counts from 1, `column` from 0."""
        position = Position(self.file, line, column + 1)
        excerpt = line_excerpt(self.lines, position)
        self.faults.append(input_finding("csv", message, position, help, excerpt=excerpt))

    def header(self, number: int, line: str) -> list[str]:
        """The names of the header line; stops here when it cannot be used."""
        starts, names, stray = _split(line)
        wanted = ",".join([*self.columns, *self.optional])
        known = (*self.columns, *self.optional)
        if stray >= 0:
            self.fault("a quote is misplaced in the header line", number, stray, f"write `{wanted}`")
        elif not set(names) & set(known):
            self.header_missing(number, line, wanted)
        else:
            self.header_names(number, starts, names, known)
        if self.faults:
            raise InputError(self.faults)
        return names

    def header_missing(self, number: int, line: str, wanted: str) -> None:
        """The first line is no header: say whether the separator is to blame."""
        separator = next((char for char in ";\t|" if char in line), "")
        if separator:
            name = "tabs" if separator == "\t" else f"`{separator}`"
            self.fault(
                f"the fields are separated by {name}",
                number,
                line.index(separator),
                "separate them by commas",
            )
        else:
            self.fault("the header line is missing", number, 0, f"make `{wanted}` the first line")

    def header_names(self, number: int, starts: list[int], names: list[str], known: Iterable[str]) -> None:
        for index, name in enumerate(names):
            if name not in known:
                close = did_you_mean(name, known)
                help = f"did you mean {close}?" if close else f"remove it; known columns: {', '.join(known)}"
                self.fault(f"the column {shown(name)} is unknown", number, starts[index], help)
            elif name in names[:index]:
                self.fault(
                    f"the column {shown(name)} appears twice", number, starts[index], "remove one of the two"
                )
        for name in self.columns:
            if name not in names:
                self.fault(
                    f"the column {shown(name)} is missing", number, 0, f"add {name} to the header line"
                )

    def row(self, number: int, line: str, width: int, places: tuple[int, ...]) -> Row | None:
        """The row of one line; None (with a fault) when it cannot be used."""
        if '"' in line:
            _, texts, stray = _split(line)
            if stray >= 0:
                help = 'put quotes around the whole field and on one line: "leaf[1,3]"'
                self.fault("a quote is not closed or not at the start of its field", number, stray, help)
                return None
        else:
            texts = [text.strip() for text in line.split(",")]
        if len(texts) != width:
            self.width(number, line, len(texts), width)
            return None
        for name, place in zip(self.columns, places, strict=False):
            if not texts[place]:
                self.fault(
                    f"{name} is empty", number, _split(line)[0][place], f"write the {name} of this line"
                )
        return Row(number, tuple([texts[place] if place >= 0 else "" for place in places]))

    def width(self, number: int, line: str, found: int, width: int) -> None:
        """The fault for a wrong number of fields, at the first field too many or the end of the line."""
        column = _split(line)[0][width] if found > width else len(line.rstrip())
        inside = re.search(r"\[[^\]]*,", line)
        help = f"write {width} fields separated by commas"
        if inside and found > width:
            help = 'put a range with a comma in quotes: "leaf[1,3]"'
        self.fault(f"this line has {found} fields, the header has {width}", number, column, help)
