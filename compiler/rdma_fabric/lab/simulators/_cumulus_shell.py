"""A small bash for the Cumulus Linux simulator: words, quotes, `;`, `&&`, `||`, pipes, redirection."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field

# `$` outside single quotes, expanded when the command runs.
_DOLLAR = "\x00"
_OPERATORS = ("&&", "||", "<<", ">>", ";", "|", "<", ">", "&")


class SyntaxProblem(Exception):
    """A line that bash does not accept; the text is bash's."""


@dataclass(slots=True)
class Simple:
    """One command with its redirections: (operator, target), descriptors as `2>`."""

    words: list[str] = field(default_factory=list)
    redirects: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Item:
    """One pipeline and the operator before it (`;`, `&&`, `||`)."""

    before: str
    pipeline: list[Simple]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one command wrote; `question` asks before it goes on (a callable takes the answer)."""

    stdout: str = ""
    stderr: str = ""
    status: int = 0
    question: str = ""
    resume: Callable[[str], Outcome] | None = None
    close: bool = False


def lines_of(*texts: str) -> str:
    """Text with a newline at the end of every line, empty texts left out."""
    return "".join(f"{text}\n" for text in texts if text)


def _next(line: str, start: int) -> tuple[str, bool, int]:
    """The next word or operator: (text, is operator, end)."""
    position = start
    match = re.compile(r"[12]?>&[12]|[12]>>?|&>>?").match(line, position)
    if match:
        return match[0], True, match.end()
    operator = next((op for op in _OPERATORS if line.startswith(op, position)), "")
    if operator:
        return operator, True, position + len(operator)
    word = ""
    while position < len(line):
        char = line[position]
        if char in " \t;&|<>":
            break
        if char == "'":
            end = line.find("'", position + 1)
            if end < 0:
                raise SyntaxProblem("-bash: unexpected EOF while looking for matching `''")
            word += line[position + 1 : end]
            position = end + 1
        elif char == '"':
            text, position = _double(line, position + 1)
            word += text
        elif char == "\\" and position + 1 < len(line):
            word += line[position + 1]
            position += 2
        else:
            word += _DOLLAR if char == "$" else char
            position += 1
    return word, False, position


def _double(line: str, position: int) -> tuple[str, int]:
    text = ""
    while position < len(line):
        char = line[position]
        if char == '"':
            return text, position + 1
        if char == "\\" and position + 1 < len(line) and line[position + 1] in '"\\$`':
            text += line[position + 1]
            position += 2
            continue
        text += _DOLLAR if char == "$" else char
        position += 1
    raise SyntaxProblem("-bash: unexpected EOF while looking for matching `\"'")


def parse(line: str) -> list[Item]:
    """The pipelines of a line; raises SyntaxProblem."""
    items = [Item(";", [Simple()])]
    position, awaiting = 0, ""
    while position < len(line):
        if line[position] in " \t":
            position += 1
            continue
        if line[position] == "#":
            break
        text, is_operator, position = _next(line, position)
        command = items[-1].pipeline[-1]
        if not is_operator:
            if awaiting:
                command.redirects.append((awaiting, text))
                awaiting = ""
            else:
                command.words.append(text)
            continue
        if awaiting or (text in (";", "&&", "||", "|") and not command.words):
            raise SyntaxProblem(f"-bash: syntax error near unexpected token `{text}'")
        awaiting = _operator(text, items)
    if awaiting:
        raise SyntaxProblem("-bash: syntax error near unexpected token `newline'")
    if not items[-1].pipeline[-1].words and (len(items) > 1 or len(items[-1].pipeline) > 1):
        if items[-1].before != ";" or len(items[-1].pipeline) > 1:
            raise SyntaxProblem("-bash: syntax error: unexpected end of file")
        items.pop()
    return items if items[0].pipeline[0].words else []


def _operator(text: str, items: list[Item]) -> str:
    """Act on an operator; returns a redirection that waits for its target."""
    if text in (";", "&&", "||", "&"):
        items.append(Item(";" if text == "&" else text, [Simple()]))
        return ""
    if text == "|":
        items[-1].pipeline.append(Simple())
        return ""
    if ">&" in text:
        items[-1].pipeline[-1].redirects.append((text, ""))
        return ""
    return text


def heredoc(line: str) -> str:
    """The end word of a here-document in the line, empty without one."""
    found = re.search(r"<<-?\s*(['\"]?)([\w.]+)\1", line)
    return found[2] if found else ""


def expand(word: str, variables: dict[str, str]) -> str:
    """The word with `~` and its variables; unknown ones are empty."""

    def value(found: re.Match[str]) -> str:
        return variables.get(found[1].strip("{}"), "")

    if word == "~" or word.startswith("~/"):
        word = variables["HOME"] + word[1:]
    return re.sub(_DOLLAR + r"(\?|\w+|\{\w+\})", value, word).replace(_DOLLAR, "$")


def absolute(path: str, home: str) -> str:
    """A file name as an absolute one."""
    return posixpath.normpath(posixpath.join(home, path))


class Files:
    """File commands over the device's files by absolute path."""

    def __init__(self, files: dict[str, bytes], user: str, root: bool) -> None:
        self.files = files
        self.home = "/root" if root else f"/home/{user}"
        self.root = root

    def path(self, name: str) -> str:
        """An absolute path, relative names below the home directory."""
        return absolute(name, self.home)

    def read(self, name: str) -> str:
        """The text of a file; raises OSError with bash's words."""
        path = self.path(name)
        if path == "/dev/null":
            return ""
        if path not in self.files:
            if self.names(path):
                raise OSError("Is a directory")
            raise OSError("No such file or directory")
        return self.files[path].decode(errors="replace")

    def write(self, name: str, text: str, append: bool = False) -> None:
        """Write a file; raises OSError."""
        path = self.path(name)
        if path == "/dev/null":
            return
        if not self.root and not path.startswith((f"{self.home}/", "/tmp/")):
            raise OSError("Permission denied")
        old = self.files.get(path, b"") if append else b""
        self.files[path] = old + text.encode()

    def names(self, name: str) -> list[str]:
        """Names directly below a directory."""
        base = self.path(name).rstrip("/") + "/"
        return sorted({path[len(base) :].split("/")[0] for path in self.files if path.startswith(base)})

    def cat(self, words: list[str], stdin: str) -> Outcome:
        """`cat FILE...`"""
        if not words or words == ["-"]:
            return Outcome(stdin)
        text, errors = "", []
        for name in words:
            try:
                text += self.read(name)
            except OSError as error:
                errors.append(f"cat: {name}: {error}")
        return Outcome(text, lines_of(*errors), 1 if errors else 0)

    def ls(self, words: list[str]) -> Outcome:
        """`ls [FILE...]`, options are ignored."""
        text, errors = "", []
        for name in [word for word in words if not word.startswith("-")] or [self.home]:
            names = self.names(name)
            if self.path(name) in self.files:
                text += f"{name}\n"
            elif names or self.path(name) in (self.home, "/tmp", "/"):
                text += lines_of(*names)
            else:
                errors.append(f"ls: cannot access '{name}': No such file or directory")
        return Outcome(text, lines_of(*errors), 2 if errors else 0)

    def tee(self, words: list[str], stdin: str) -> Outcome:
        """`tee [-a] FILE...`"""
        errors = []
        for name in [word for word in words if word != "-a"]:
            try:
                self.write(name, stdin, "-a" in words)
            except OSError as error:
                errors.append(f"tee: {name}: {error}")
        return Outcome(stdin, lines_of(*errors), 1 if errors else 0)

    def rm(self, words: list[str]) -> Outcome:
        """`rm [-f] FILE...`"""
        errors = []
        for name in [word for word in words if not word.startswith("-")]:
            path = self.path(name)
            if path not in self.files:
                if "-f" not in words:
                    errors.append(f"rm: cannot remove '{name}': No such file or directory")
            elif not self.root and not path.startswith((f"{self.home}/", "/tmp/")):
                errors.append(f"rm: cannot remove '{name}': Permission denied")
            else:
                del self.files[path]
        return Outcome("", lines_of(*errors), 1 if errors else 0)


def grep(words: list[str], stdin: str) -> Outcome:
    """`grep [-q] [-c] PATTERN` over a pipe."""
    options = {word for word in words if word.startswith("-")}
    patterns = [word for word in words if not word.startswith("-")]
    if len(patterns) != 1 or options - {"-q", "-E", "-c", "-i", "-v"}:
        return Outcome("", "grep: only one pattern over a pipe is supported here\n", 2)
    flags = re.IGNORECASE if "-i" in options else 0
    found = [
        line for line in stdin.splitlines() if bool(re.search(patterns[0], line, flags)) != ("-v" in options)
    ]
    status = 0 if found else 1
    if "-q" in options:
        return Outcome(status=status)
    return Outcome(f"{len(found)}\n" if "-c" in options else lines_of(*found), status=status)
