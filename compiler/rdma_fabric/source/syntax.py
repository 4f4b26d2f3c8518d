"""What the YAML parser could not read, in words that say what to write instead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from rdma_fabric.findings import Finding, Position, input_finding
from rdma_fabric.source.text import line_excerpt

_SCANNER: Any = getattr(yaml, "CLoader", yaml.Loader)
_NEAR = 200  # characters; names have 64 at most
_RANGE = re.compile(r"[^\s,{}\[\]\"']*(?:\[[0-9][0-9,\- ]*\][^\s,{}\[\]:\"']*)+(?::[^\s,{}\[\]:\"']+)*")


def range_word(line: str, column: int) -> str:
    """The word with a range that covers `column` of `line`, or ""."""
    start = max(0, column - _NEAR)  # on a line of a megabyte the pattern would need hours
    found = _RANGE.finditer(line[start : column + _NEAR])
    return next((one.group() for one in found if one.start() <= column - start < one.end()), "")


# Part of the parser's message -> what it means for the writer of the file, what to do.
_PROBLEMS: tuple[tuple[str, str, str], ...] = (
    (
        "mapping values are not allowed",
        "a `: ` stands where no key can be",
        "indent this key as its neighbours, and end the key in the line above with a colon",
    ),
    (
        "could not find expected ':'",
        "a key without a colon",
        "write `name: value`, with a space after the colon",
    ),
    (
        "did not find expected ',' or '}'",
        "the map that starts with { is not closed, or a comma is missing",
        "write {name: value, name: value}; quote values that contain , [ ] { }",
    ),
    (
        "did not find expected ',' or ']'",
        "the list that starts with [ is not closed, or a comma is missing",
        "write [one, two]; quote values that contain , [ ] { }",
    ),
    ("found unexpected end of stream", "the quote is never closed", "close it"),
    ("unexpected document indicator", "the quote is never closed", "close it"),
    (
        "unknown escape character",
        "the backslash starts no known escape",
        "use 'single quotes' around text with backslashes",
    ),
    (
        "did not find expected key",
        "a key is wanted here",
        "check the indentation, and quote the whole value where text follows a closing quote or bracket",
    ),
    (
        "did not find expected '-' indicator",
        "a list item is wanted here",
        "start it with `- `, or indent it as a key",
    ),
    (
        "block sequence entries are not allowed",
        "a list cannot start here",
        "start it on a line of its own, or write [one, two]",
    ),
    (
        "did not find expected node content",
        "a value is wanted here",
        "write a value, or remove the comma or bracket",
    ),
    (
        "did not find expected <document start>",
        "this line is indented less than the first one",
        "start all keys of one map in the same column",
    ),
    ("found character that cannot start any token", "a value cannot start with this character", "quote it"),
    (
        "found incompatible YAML document",
        "this version of YAML is unknown",
        "remove the line: files are read as YAML 1.2",
    ),
    (
        "exceeded maximum nesting depth",
        "maps and lists are nested too deep",
        "check the brackets",
    ),
    ("mapping keys are not allowed", "a `? ` stands where no key can be", "quote the value"),
)


def syntax_finding(error: yaml.YAMLError, text: str, file: str, lines: Sequence[str]) -> Finding:
    """The finding for what the parser could not read in `text`."""
    line, column, message, help = _told(error, text, lines)
    position = Position(file, line + 1, column + 1)
    return input_finding("yaml-syntax", message, position, help, excerpt=line_excerpt(lines, position))


def _told(error: yaml.YAMLError, whole: str, lines: Sequence[str]) -> tuple[int, int, str, str]:
    """Line and column (from 0) to blame, what is wrong there, and what to do."""
    problem = getattr(error, "problem", None) or str(error)
    mark = getattr(error, "problem_mark", None)
    line, column = (mark.line, mark.column) if mark else (0, 0)
    quote = _quoted_key(error, line, lines) or _long_quote(whole, line)
    if quote:
        message = (
            f"the quote that opens here closes in line {line + 1}, and what follows there cannot be read"
        )
        return *quote, message, "close the quote where the text ends"
    text = lines[line] if line < len(lines) else ""
    tab = text.find("\t", 0, len(text) - len(text.lstrip()))
    written = range_word(text, column) or (
        range_word(text, column - 1) if "mapping values" in problem else ""
    )
    if tab >= 0 or text[column : column + 1] == "\t":
        column = tab if tab >= 0 else column
        message, help = "a tab indents this line, and YAML allows only spaces", "indent with spaces"
    elif written:
        column = text.rfind(written, 0, column + len(written))
        message, help = f"the range {written} is not in quotes", f'write "{written}"'
    else:
        message, help = _advice(problem, text[:column], text[column:])
        opening = getattr(error, "context_mark", None)
        if opening and (
            "never" in message
            or "without a colon" in message
            or ("not closed" in message and line > opening.line)
        ):
            line, column = opening.line, opening.column
        if "<document start>" in problem and not column and (first := _indented_first(lines)):
            return *first, f"this line is indented, and line {line + 1} is not", help
    return line, column, message, help


def _long_quote(text: str, line: int) -> tuple[int, int] | None:
    """Where quoted text starts that began in a line before and ends in `line`, in which an error is."""
    found = None
    try:
        for token in yaml.scan(text, Loader=_SCANNER):
            if token.start_mark.line > line:
                break
            if isinstance(token, yaml.ScalarToken) and token.style in ("'", '"'):
                start, end = token.start_mark, token.end_mark
                if start.line < line == end.line:
                    found = start.line, start.column
    except yaml.YAMLError:
        return found
    return found


def _quoted_key(error: yaml.YAMLError, line: int, lines: Sequence[str]) -> tuple[int, int] | None:
    """The same where the parser takes the quoted text for a key: it names the start itself."""
    start = getattr(error, "context_mark", None)
    if (
        start
        and "simple key" in str(getattr(error, "context", ""))
        and start.line < line
        and lines[start.line][start.column : start.column + 1] in ("'", '"')
    ):
        return start.line, start.column
    return None


def _indented_first(lines: Sequence[str]) -> tuple[int, int] | None:
    """Line and column of the first key, when it does not start in the first column."""
    for number, line in enumerate(lines):
        text = line.lstrip(" ")
        if text and text[0] not in "#%" and not text.startswith("---"):
            return (number, len(line) - len(text)) if len(line) > len(text) else None
    return None


def _advice(problem: str, before: str, after: str) -> tuple[str, str]:
    """What the parser's `problem` means and what to do; `before` and `after` are the line around it."""
    if "mapping values are not allowed" in problem and ": " in before:
        return "a second `: ` stands in this value", "quote the value, or start a new line for a new key"
    if "did not find expected key" in problem and after.startswith(("}", "]")):
        return "there is one closing bracket too many", "remove it"
    known = ((message, help) for part, message, help in _PROBLEMS if part in problem)
    return next(known, (problem, "check quotes, brackets, colons and indentation here and in the line above"))
