"""A small bash: words, quotes, lists, pipes, redirections, here-documents and substitution.

It knows what an administrator types on a switch. Compound commands (if, for, while, functions) are
refused as a syntax error.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_OPERATORS = ("&&", "||", ";", "|", "&", "\n", "(", ")")
_REDIRECT = re.compile(r"(\d?)(>>|>&|>|<<-|<<<|<<|<)")
_COMPOUND = frozenset(
    ("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac")
)


class Unfinished(Exception):
    """The text ends inside quotes, a here-document or after an operator: more lines follow."""


class ShellSyntaxError(Exception):
    """bash refuses the line; the text is its message."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a word: text, or a `$` expression; `quoted` is what neither splits nor globs."""

    text: str
    quoted: bool = False
    expand: str = ""


Word = tuple[Piece, ...]


@dataclass(slots=True)
class Redirect:
    """`fd` and operator, target word, or the body of a here-document."""

    fd: int
    kind: str
    target: Word = ()
    body: Word | None = None


@dataclass(slots=True)
class Simple:
    """One command with its assignments and redirections, or a subshell."""

    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    sub: list[Item] | None = None


@dataclass(slots=True)
class Item:
    """A pipeline and the operator before it ("" for the first)."""

    before: str
    pipeline: list[Simple]
    negated: bool = False


def parse(text: str) -> list[Item]:
    """The commands of a script; raises Unfinished or ShellSyntaxError."""
    parser = _Parser(text)
    items = parser.items(closing="")
    parser.finish()
    return items


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.documents: list[tuple[Redirect, str, bool, bool]] = []

    def finish(self) -> None:
        if self.documents:
            raise Unfinished

    def items(self, closing: str) -> list[Item]:
        found: list[Item] = []
        before = ""
        while True:
            operator = self._operator()
            if operator == closing or (operator is None and self._done()):
                if self._done() and (closing or before in ("&&", "||")):
                    raise Unfinished
                if before in ("&&", "||"):
                    raise self._unexpected(operator or "newline")
                return found
            if operator == "\n":
                continue
            if operator not in (None, "("):
                raise self._unexpected(operator or "")
            pipeline, negated, end = self._pipeline(subshell=operator == "(")
            found.append(Item(before, pipeline, negated))
            if end == closing and closing:
                return found
            if end is None:
                return found
            before = ";" if end in (";", "\n") else end

    def _pipeline(self, subshell: bool) -> tuple[list[Simple], bool, str | None]:
        pipeline: list[Simple] = []
        negated = False
        while True:
            command = self._subshell() if subshell else Simple()
            end = self._simple(command)
            if not subshell and not pipeline and command.words and _literal(command.words[0]) == "!":
                negated, command.words = True, command.words[1:]
            if not command.words and not command.redirects and command.sub is None:
                raise self._unexpected(end or "newline")
            pipeline.append(command)
            if end != "|":
                return pipeline, negated, end
            self._skip_newlines()
            if self._done():
                raise Unfinished
            subshell = self.text.startswith("(", self.at)
            self.at += subshell

    def _subshell(self) -> Simple:
        return Simple(sub=self.items(closing=")"))

    def _simple(self, command: Simple) -> str | None:
        """Read words and redirections up to an operator; returns it, or None at the end."""
        while True:
            operator = self._operator()
            if operator is not None:
                if operator == "(":
                    raise self._unexpected("(")
                return operator
            if self._done():
                return None
            found = _REDIRECT.match(self.text, self.at)
            if found:
                self._redirect(command, found)
            else:
                word = self._word()
                if not command.words and _literal(word) in _COMPOUND:
                    raise self._unexpected(_literal(word))
                command.words.append(word)

    def _redirect(self, command: Simple, found: re.Match[str]) -> None:
        self.at = found.end()
        kind = found[2]
        redirect = Redirect(int(found[1] or (0 if kind.startswith("<") else 1)), kind)
        self._skip_blank()
        if self._done() or self.text[self.at] in "\n;|&":
            raise self._unexpected(
                "newline" if self._done() or self.text[self.at] == "\n" else self.text[self.at]
            )
        word = self._word()
        command.redirects.append(redirect)
        if kind in ("<<", "<<-"):
            quoted = any(piece.quoted for piece in word)
            self.documents.append((redirect, "".join(p.text for p in word), quoted, kind == "<<-"))
        else:
            redirect.target = word

    def _operator(self) -> str | None:
        self._skip_blank()
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.at):
                self.at += len(operator)
                if operator == "\n":
                    self._read_documents()
                return operator
        return None

    def _read_documents(self) -> None:
        for redirect, end, quoted, strip in self.documents:
            lines: list[str] = []
            while True:
                if self._done():
                    raise Unfinished
                line, _, _ = self.text[self.at :].partition("\n")
                self.at = min(self.at + len(line) + 1, len(self.text))
                line = line.lstrip("\t") if strip else line
                if line == end:
                    break
                lines.append(line + "\n")
            body = "".join(lines)
            redirect.body = (Piece(body, True),) if quoted else tuple(_expressions(body))
        self.documents = []

    def _skip_blank(self) -> None:
        while not self._done():
            if self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] in " \t\r":
                self.at += 1
            elif self.text[self.at] == "#":
                while not self._done() and self.text[self.at] != "\n":
                    self.at += 1
            else:
                return

    def _skip_newlines(self) -> None:
        while not self._done() and self.text[self.at] in " \t\n":
            self.at += 1

    def _done(self) -> bool:
        return self.at >= len(self.text)

    def _word(self) -> Word:
        pieces: list[Piece] = []
        while not self._done() and self.text[self.at] not in " \t\r\n;|&()<>":
            char = self.text[self.at]
            if char == "'":
                pieces.append(Piece(self._until("'"), True))
            elif char == '"':
                pieces += self._double() or [Piece("", True)]
            elif char == "\\":
                if self.at + 1 >= len(self.text):
                    raise Unfinished
                pieces.append(Piece(self.text[self.at + 1], True))
                self.at += 2
            elif char in "$`":
                piece, self.at = _expression(self.text, self.at, quoted=False)
                pieces.append(piece)
            else:
                pieces.append(Piece(char))
                self.at += 1
        if not pieces:
            raise self._unexpected(self.text[self.at])
        return tuple(pieces)

    def _until(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise Unfinished
        found = self.text[self.at + 1 : end]
        self.at = end + 1
        return found

    def _double(self) -> list[Piece]:
        self.at += 1
        inside = ""
        while not self._done() and self.text[self.at] != '"':
            if self.text[self.at] == "\\":
                inside += self.text[self.at : self.at + 2]
                self.at += 2
            elif self.text.startswith("$(", self.at):
                _, end = _expression(self.text, self.at, quoted=True)
                inside += self.text[self.at : end]
                self.at = end
            else:
                inside += self.text[self.at]
                self.at += 1
        if self._done():
            raise Unfinished
        self.at += 1
        return list(_expressions(inside))

    def _unexpected(self, token: str) -> ShellSyntaxError:
        shown = "newline" if token == "\n" else token
        return ShellSyntaxError(f"syntax error near unexpected token `{shown}'")


def _literal(word: Word) -> str:
    """The word's text where nothing in it is quoted or expanded."""
    return "" if any(piece.quoted or piece.expand for piece in word) else "".join(p.text for p in word)


def _expression(text: str, at: int, quoted: bool) -> tuple[Piece, int]:
    """The `$` expression or backquotes at a place, and where it ends."""
    if text[at] == "`":
        end = text.find("`", at + 1)
        if end < 0:
            raise Unfinished
        return Piece(text[at + 1 : end], quoted, "command"), end + 1
    if text.startswith("$(", at):
        end = _matching(text, at + 1)
        return Piece(text[at + 2 : end], quoted, "command"), end + 1
    found = re.compile(r"\$(?:\{(\w+|\?|#|\$)\}|([A-Za-z_]\w*|[?#$!0-9@*]))").match(text, at)
    if not found:
        if text.startswith("${", at):
            raise ShellSyntaxError("bad substitution")
        return Piece("$", quoted), at + 1
    return Piece(found[1] or found[2], quoted, "variable"), found.end()


def _matching(text: str, at: int) -> int:
    depth, quote = 0, ""
    for place in range(at, len(text)):
        char = text[place]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return place
    raise Unfinished


def _expressions(text: str) -> Iterator[Piece]:
    """Pieces of a text in double quotes or of an unquoted here-document."""
    at, plain = 0, ""
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] in ("$", "`", '"', "\\", "\n"):
            plain += "" if text[at + 1] == "\n" else text[at + 1]
            at += 2
        elif text[at] in "$`":
            if plain:
                yield Piece(plain, True)
                plain = ""
            piece, at = _expression(text, at, quoted=True)
            yield piece
        else:
            plain += text[at]
            at += 1
    if plain:
        yield Piece(plain, True)


def glob(pattern: str, paths: Iterator[str] | list[str]) -> list[str]:
    """Paths that a pattern matches; `*` does not cross a slash."""
    count = pattern.count("/")
    return sorted(p for p in paths if p.count("/") == count and fnmatch.fnmatchcase(p, pattern))
