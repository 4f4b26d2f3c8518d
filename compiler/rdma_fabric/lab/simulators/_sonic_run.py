"""Runs parsed shell commands on a simulated SONiC switch, with the user's rights."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from rdma_fabric.lab.simulators._sonic_click import Stop
from rdma_fabric.lab.simulators._sonic_shell import (
    Item,
    Piece,
    Redirect,
    ShellSyntaxError,
    Simple,
    Unfinished,
    Word,
    glob,
    parse,
)
from rdma_fabric.lab.simulators._sonic_state import Switch

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_WRITABLE = ("/tmp/", "/var/tmp/", "/dev/shm/", "/run/lock/", "/home/")


class Leave(Exception):
    """`exit` or `logout` was typed."""


class NeedsAnswer(Exception):
    """A command asks a question on the terminal; the text is the question."""


class WantsRoot(Exception):
    """`sudo -s`: the session becomes a root shell."""


@dataclass
class Runner:
    """One shell process: user, folder, variables and what it printed so far."""

    switch: Switch
    user: str
    root: bool = False
    cwd: str = ""
    terminal: bool = False
    answers: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    status: int = 0
    stdin: str = ""
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    tools: dict[str, Callable[[Runner, list[str]], int]] = field(default_factory=dict)
    name: str = "-bash"

    def __post_init__(self) -> None:
        self.cwd = self.cwd or self.home

    @property
    def home(self) -> str:
        """The user's home folder."""
        return "/root" if self.user == "root" else f"/home/{self.user}"

    # --- what commands use ---------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Print a line on stdout."""
        self.out.append(text + "\n")

    def write(self, text: str) -> None:
        """Print text as it is on stdout."""
        self.out.append(text)

    def complain(self, text: str) -> None:
        """Print a line on stderr."""
        self.err.append(text + "\n")

    def ask(self, question: str) -> bool:
        """Ask on the terminal; a command without one reads end of file and aborts."""
        if self.answers:  # the terminal shows question and answer already
            return self.answers.pop(0).strip().lower() in ("y", "yes")
        if self.stdin:
            line, _, self.stdin = self.stdin.partition("\n")
            self.say(question)
            return line.strip().lower() in ("y", "yes")
        if self.terminal:
            raise NeedsAnswer(question)
        raise Stop(1, "Aborted!\n", question + "\n")

    def path(self, name: str) -> str:
        """The absolute path of a file name."""
        parts: list[str] = []
        for part in (name if name.startswith("/") else f"{self.cwd}/{name}").split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part not in ("", "."):
                parts.append(part)
        return "/" + "/".join(parts)

    def is_folder(self, path: str) -> bool:
        """True for a folder: made, implied by a file, or part of the system."""
        fixed = {
            "/",
            "/tmp",
            "/etc",
            "/etc/sonic",
            "/home",
            self.home,
            "/var/tmp",
            "/run/lock",
            "/root",
            "/dev",
        }
        known = path in self.switch.folders or path in fixed
        return known or any(name.startswith(path.rstrip("/") + "/") for name in self.switch.files)

    def may_write(self, path: str) -> bool:
        """True where the user may create or change a file."""
        return self.root or path.startswith(_WRITABLE)

    def put(self, path: str, data: bytes) -> str:
        """Write a file; returns the reason when that fails."""
        if path == "/dev/null":
            return ""
        if self.is_folder(path):
            return "Is a directory"
        if not self.is_folder(path.rsplit("/", 1)[0] or "/"):
            return "No such file or directory"
        if not self.may_write(path):
            return "Permission denied"
        self.switch.files[path] = data
        return ""

    # --- running -------------------------------------------------------------------------------

    def script(self, text: str) -> int:
        """Run a script; returns the status of the last command."""
        try:
            items = parse(text)
        except ShellSyntaxError as error:
            self.complain(f"{self.name}: {error}")
            self.status = 2
            return 2
        except Unfinished:
            self.complain(f"{self.name}: -c: line 1: syntax error: unexpected end of file")
            self.status = 2
            return 2
        return self.run(items)

    def run(self, items: list[Item]) -> int:
        """Run parsed commands."""
        for item in items:
            if (item.before == "&&" and self.status) or (item.before == "||" and not self.status):
                continue
            self.status = self._pipeline(item.pipeline)
            if item.negated:
                self.status = int(not self.status)
        return self.status

    def _pipeline(self, pipeline: list[Simple]) -> int:
        status, kept = 0, self.stdin
        for place, command in enumerate(pipeline):
            last = place == len(pipeline) - 1
            outer, self.out = self.out, []
            try:
                status = self._command(command)
            finally:
                printed, self.out = "".join(self.out), outer
                if last:
                    self.out.append(printed)
            self.stdin = printed
        self.stdin = kept
        return status

    def _command(self, command: Simple) -> int:
        words = [text for word in command.words for text in self._expand(word)]
        if command.sub is None and not words and not command.redirects:
            return self.status
        outer_out, outer_err, kept = self.out, self.err, self.stdin
        self.out, self.err = [], []
        try:
            problem = self._input(command.redirects)
            if problem:
                self.complain(problem)
                status = 1
            else:
                status = self._execute(command, words)
        finally:
            out, err = self.out, self.err
            self.out, self.err, self.stdin = outer_out, outer_err, kept
            failed = self._output(command.redirects, "".join(out), "".join(err))
        return 1 if failed else status

    def _execute(self, command: Simple, words: list[str]) -> int:
        if command.sub is not None:
            kept = (self.cwd, dict(self.variables))
            status = self.run(command.sub)
            self.cwd, self.variables = kept
            return status
        while words and _ASSIGNMENT.fullmatch(words[0]):
            found = _ASSIGNMENT.fullmatch(words.pop(0))
            assert found is not None
            if not words:
                self.variables[found[1]] = found[2]
        return self.call(words) if words else 0

    def call(self, argv: list[str]) -> int:
        """Run one program by its words; status 127 when there is none."""
        name = argv[0].rsplit("/", 1)[-1] if argv[0].startswith(("/usr/", "/bin/", "/sbin/")) else argv[0]
        tool = self.tools.get(name)
        if tool is None:
            self.complain(f"{self.name}: {argv[0]}: command not found")
            return 127
        try:
            return tool(self, argv[1:])
        except Stop as stop:
            self.write(stop.out)
            if stop.err:
                self.err.append(stop.err)
            return stop.status

    def child(self, text: str, root: bool) -> int:
        """Run a script in a child shell (`bash -c`, `sudo sh -c`)."""
        kept = (self.root, self.cwd, dict(self.variables), self.name, self.user)
        self.root, self.name = root, "bash"
        self.user = "root" if root else self.user
        try:
            return self.script(text)
        except Leave:
            return self.status
        finally:
            self.root, self.cwd, self.variables, self.name, self.user = kept

    def _input(self, redirects: list[Redirect]) -> str:
        for redirect in redirects:
            if redirect.body is not None:
                self.stdin = "".join(self._value(piece) for piece in redirect.body)
            elif redirect.kind == "<<<":
                self.stdin = " ".join(self._expand(redirect.target)) + "\n"
            elif redirect.kind == "<":
                name = " ".join(self._expand(redirect.target))
                data = b"" if name == "/dev/null" else self.switch.files.get(self.path(name))
                if data is None:
                    return f"{self.name}: {name}: No such file or directory"
                self.stdin = data.decode(errors="surrogateescape")
            elif redirect.kind in (">", ">>"):
                name = " ".join(self._expand(redirect.target))
                path = self.path(name)
                reason = self.put(path, self.switch.files.get(path, b"") if redirect.kind == ">>" else b"")
                if reason:
                    return f"{self.name}: {name}: {reason}"
        return ""

    def _output(self, redirects: list[Redirect], out: str, err: str) -> bool:
        """Send what a command printed where its redirections say."""
        target: dict[int, str | int] = {1: 1, 2: 2}
        for redirect in redirects:
            if redirect.kind in (">", ">>"):
                target[redirect.fd] = self.path(" ".join(self._expand(redirect.target)))
            elif redirect.kind == ">&":
                target[redirect.fd] = target.get(int(" ".join(self._expand(redirect.target)) or 1), 1)
        for stream, text in ((1, out), (2, err)):
            where = target[stream]
            if where == 1:
                self.out.append(text)
            elif where == 2:
                self.err.append(text)
            elif text:
                assert isinstance(where, str)
                data = self.switch.files.get(where, b"") + text.encode(errors="surrogateescape")
                if self.put(where, data):
                    return True
        return False

    # --- words ---------------------------------------------------------------------------------

    def _expand(self, word: Word) -> list[str]:
        """The words that one word becomes: variables, substitution, splitting, globbing."""
        fields: list[str] = [""]
        magic = False
        seen = False
        for place, piece in enumerate(word):
            value = self._value(piece)
            if piece.expand and not piece.quoted:
                parts = value.split()
                if parts:
                    fields[-1] += parts[0]
                    fields += parts[1:]
                    seen = True
                continue
            if not piece.quoted:
                if place == 0 and value == "~" and (len(word) == 1 or word[1].text == "/"):
                    value = self.home
                magic = magic or value in "*?"
            fields[-1] += value
            seen = True
        if not seen:
            return []
        if magic and len(fields) == 1:
            return glob(self.path(fields[0]), list(self.switch.files)) or fields
        return fields

    def _value(self, piece: Piece) -> str:
        if piece.expand == "command":
            inner = Runner(
                self.switch, self.user, self.root, self.cwd, variables=dict(self.variables), tools=self.tools
            )
            inner.status = self.status
            self.status = inner.script(piece.text)
            self.err += inner.err
            return "".join(inner.out).rstrip("\n")
        if piece.expand != "variable":
            return piece.text
        fixed = {
            "?": str(self.status),
            "$": "4711",
            "#": "0",
            "HOME": self.home,
            "USER": self.user,
            "PWD": self.cwd,
            "HOSTNAME": self.switch.hostname,
        }
        return self.variables.get(piece.text, fixed.get(piece.text, ""))
