"""Reading input files as text: regular, UTF-8, of bounded size, and without characters that nobody sees."""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, Protocol

from rdma_fabric.findings import InputError, Position, input_finding, shown

SIZE_LIMIT = 20_000_000
"""Bytes; a fabric of 16,384 hosts needs a tenth of it when every host is written out."""

FINDINGS_LIMIT = 200
"""Mistakes of one file that are told; who has more of them mends one kind and asks again."""

_EXCERPT_WIDTH = 120

# Controls, line ends that only YAML 1.1 knows, and marks that join, reorder or hide text (a review would not
# show what a device gets).
INVISIBLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]"
)
# No-break and typographic spaces where they look like indentation.
_FALSE_INDENT = re.compile(r"^[ \t-]*([\u00a0\u2000-\u200a\u202f\u3000])", re.MULTILINE)


class HasLines(Protocol):
    """What `excerpt` needs of a source: its lines."""

    @property
    def lines(self) -> Sequence[str]:
        """The lines without their ends."""
        ...


def excerpt(source: HasLines, position: Position) -> str:
    """The source line of `position` with its number, and a caret below the column; "" for a whole file."""
    return line_excerpt(source.lines, position)


def line_excerpt(lines: Sequence[str], position: Position) -> str:
    """The same for bare lines; long lines are cut around the column, unprintable characters replaced."""
    if not 1 <= position.line <= len(lines):
        return ""
    text, column = lines[position.line - 1], position.column - 1
    start = max(0, column - _EXCERPT_WIDTH // 2) if len(text) > _EXCERPT_WIDTH else 0
    window = text[start : start + _EXCERPT_WIDTH]
    head, tail = "..." if start else "", "..." if start + _EXCERPT_WIDTH < len(text) else ""
    visible = "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in window)
    number = str(position.line)
    caret = " " * (len(head) + column - start) + "^"
    return f"{number} | {head}{visible}{tail}".rstrip() + f"\n{' ' * len(number)} | {caret}"


def file_error(path: Path | str, reason: str, help: str) -> InputError:
    """The error for a file that cannot be used as a whole."""
    message = f"cannot use {shown(str(path), 200)[1:-1]}: {reason}"
    return InputError([input_finding("file", message, Position(str(path), 0, 0), help)])


def read_bytes(path: Path | str, missing: str = "create it, or check the name and the folder") -> bytes:
    """The content of a regular file of at most SIZE_LIMIT bytes; `missing` helps when it does not exist."""
    path = Path(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise file_error(path, "it is a directory", "name a file")
        if not stat.S_ISREG(mode):  # a pipe or a device would never end
            raise file_error(path, "it is not a regular file", "name a file")
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        raise file_error(path, "it does not exist", missing) from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise file_error(path, reason.lower(), "make it a file that you can read") from None
    if len(content) > SIZE_LIMIT:
        reason = f"it has more than {SIZE_LIMIT // 10**6} MB"
        raise file_error(path, reason, "use ranges such as leaf[01-64], or split it")
    return content


def decode(content: bytes, file: str) -> str:
    """`content` as text with \\n line ends, without byte order mark; InputError for what must not be."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise file_error(file, "it is UTF-16", "save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = len(error.object[: error.start].decode("utf-8"))  # `object` is without byte order mark
        repaired = content.decode("utf-8-sig", "replace")
        message = f"the byte 0x{error.object[error.start]:02X} is not UTF-8"
        _refuse(repaired, start, file, message, "save the file as UTF-8")
    odd = INVISIBLE.search(text)
    if odd:
        message = f"an invisible character (U+{ord(odd.group()):04X}) is in the file"
        _refuse(text, odd.start(), file, message, "delete it and type the text around it anew")
    odd = _FALSE_INDENT.search(text)
    if odd:
        message = f"a special space (U+{ord(odd[1]):04X}) indents this line"
        _refuse(text, odd.start(1), file, message, "indent with ordinary spaces")
    return _line_ends(text)


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _refuse(text: str, index: int, file: str, message: str, help: str) -> NoReturn:
    """Raises the finding for the character at `index` of `text`."""
    before = _line_ends(text[:index])
    position = Position(file, before.count("\n") + 1, len(before) - before.rfind("\n"))
    excerpt = line_excerpt(_line_ends(text).split("\n"), position)
    raise InputError([input_finding("file", message, position, help, excerpt=excerpt)])
