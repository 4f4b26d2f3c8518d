"""One login on one node: lines on a device's own CLI, or commands on a POSIX shell.

A CLI (`Dialect.status` False) is one interactive shell, prepared by a lean netmiko driver and read by
its prompts. A POSIX shell gets every line as one command of its own on the same connection: exact
quoting, several lines, separate streams and the exit status, with no prompt or terminal to mistake;
so no state (folder, variables) lasts from one line to the next.
"""

from __future__ import annotations

import inspect
import re
import shlex
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from rdma_fabric.platforms._contract import Dialect
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.errors import TransportError
from rdma_fabric.transport.targets import Target

if TYPE_CHECKING:
    import paramiko

    from rdma_fabric.transport.drivers import Lean

IMPORTING: Final = threading.Lock()
"""Held while an SSH library loads: two threads that import modules which import each other fail."""
LINE_S: Final = 60.0
LOGIN_S: Final = 20.0
_LOST_S: Final = 0.3
_TAIL: Final = 2_000
# Cisco's line editor cuts long names in the prompts of its modes; netmiko compares 16 characters, too.
_NAME: Final = 16
_LONG_LINE: Final = 400  # of the terminal's 511 columns, prompt included
_QUESTION: Final = re.compile(
    r"(?:\[[Yy](?:es)?\s*[/,|]\s*[Nn]o?\]|\([Yy](?:es)?\s*[/|]\s*[Nn]o?(?:\s*[/|]\s*\w+)?\)|\[confirm\]"
    r"|[Pp]assword|\[yes,no\] \(\w+\))[^\n]{0,12}\Z"
)
_SECRET: Final = re.compile(r"[Pp]assword[^\n]{0,40}:[ \t]*\Z")
# What some devices print above a prompt: routing engine and place in the configuration.
_ABOVE: Final = r"(?:\n\{\w+[^\n{}]*\}|\n\[edit[^\n]*\]|\n# [^\n]*rolled back in[^\n]*|\n[ \t]*(?=\n))*"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the node said to one line: everything as on a terminal, and the exit status of a shell.

    `output` is a shell's standard output alone; `asks` is True when the device waits for a reply.
    """

    text: str
    status: int | None = None
    output: str = ""
    asks: bool = False


class Session:
    """One login; a context manager. Every method raises TransportError."""

    def __init__(self, target: Target, dialect: Dialect) -> None:
        self.target, self.dialect = target, dialect

    def run(self, line: str, *, timeout_s: float = LINE_S) -> Answer:
        """Type one line (a CLI gets several lines one by one) and wait for its whole answer."""
        raise NotImplementedError

    def ask(self, questions: Iterable[str], *, timeout_s: float = LINE_S) -> dict[str, str]:
        """The answers to read-only commands, in order."""
        raise NotImplementedError

    def put(self, path: str, text: str | None, mode: int = 0o644, owner: str = "root") -> None:
        """Write a whole file at once, or remove it when `text` is None."""
        raise NotImplementedError

    def _patience(self, timeout_s: float) -> float:
        """Seconds to wait for an answer: the inventory's `read_timeout_override` where that is longer."""
        return max(timeout_s, self.target.seconds("read_timeout_override", timeout_s))

    def top(self) -> bool:
        """Leave the modes below the one after the login; False when the device does not let us."""
        return True

    def close(self) -> None:
        """End the login; harmless when it ended already."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_session(
    target: Target, dialect: Dialect, secrets: Secrets, *, timeout_s: float = LOGIN_S
) -> Session:
    """Log in; TransportError says why not. Only a connection that broke before the login is tried again."""
    with IMPORTING:
        from rdma_fabric.transport.connection import connect

    transport = connect(target, secrets, timeout_s=timeout_s)
    try:
        if dialect.status:
            return ShellSession(target, dialect, transport, secrets.username(target))
        return CliSession(target, dialect, transport, secrets, timeout_s)
    except BaseException:
        transport.close()
        raise


class _Connected(Session):
    """What both kinds share: the connection and its files."""

    def __init__(self, target: Target, dialect: Dialect, transport: paramiko.Transport) -> None:
        super().__init__(target, dialect)
        self._transport = transport

    def close(self) -> None:
        """End the login."""
        self._transport.close()

    def _error(self, kind: Any, text: str) -> TransportError:
        return TransportError(kind, f"{self.target}: {text}")

    def put(self, path: str, text: str | None, mode: int = 0o644, owner: str = "root") -> None:
        """By SFTP to a file beside, then renamed over `path`; it belongs to the user of the login."""
        import paramiko

        try:
            with self._sftp() as files:
                if text is None:
                    _remove(files, path)
                else:
                    _write(files, path, text, mode)
        except PermissionError as error:
            raise self._error("refused", f"{path} may not be written") from error
        except EOFError as error:
            raise self._error("closed", f"the connection ended while {path} was written") from error
        except OSError as error:
            if not self._transport.is_active():
                raise self._error("closed", f"the connection ended while {path} was written") from error
            raise self._error("refused", f"{path} was not written: {error}") from error
        except paramiko.SSHException as error:
            raise self._error("closed", f"the connection ended while {path} was written") from error

    def _sftp(self) -> paramiko.SFTPClient:
        """TransportError "refused" where the node has no SFTP."""
        import paramiko

        try:
            channel = self._transport.open_session(timeout=LINE_S)
            channel.settimeout(LINE_S)
            channel.invoke_subsystem("sftp")
            return paramiko.SFTPClient(channel)
        except (paramiko.SSHException, EOFError) as error:
            if self._transport.is_active():
                raise self._error("refused", "the node has no SFTP") from error
            raise self._error("closed", "the connection ended") from error


def _write(files: paramiko.SFTPClient, path: str, text: str, mode: int) -> None:
    beside = f"{path}.{uuid.uuid4().hex[:8]}"
    try:
        with files.open(beside, "wx") as file:
            file.set_pipelined(True)
            file.write(text.encode())
        files.chmod(beside, mode)
        files.posix_rename(beside, path)
    except OSError:
        _remove(files, beside)
        raise


def _remove(files: paramiko.SFTPClient, path: str) -> None:
    try:
        files.remove(path)
    except FileNotFoundError:
        return


# -- a POSIX shell


class ShellSession(_Connected):
    """Commands on channels of one connection; the login shell of the user runs each."""

    def __init__(self, target: Target, dialect: Dialect, transport: paramiko.Transport, user: str) -> None:
        super().__init__(target, dialect, transport)
        self._user = user

    def run(self, line: str, *, timeout_s: float = LINE_S) -> Answer:
        """One command or script; `text` is standard output, then standard error."""
        return self._execute(line, timeout_s)

    def ask(self, questions: Iterable[str], *, timeout_s: float = LINE_S) -> dict[str, str]:
        """Standard output of each command; with standard error where it failed or said nothing."""
        answers = {}
        for question in questions:
            answer = self.run(question, timeout_s=timeout_s)
            good = answer.status == 0 and answer.output
            answers[question] = answer.output if good else answer.text
        return answers

    def put(self, path: str, text: str | None, mode: int = 0o644, owner: str = "root") -> None:
        """By SFTP; as root through the shell where there is none or the user may not write there."""
        try:
            super().put(path, text, mode, owner)
            return
        except TransportError as error:
            if error.kind != "refused":
                raise
            first = error
        command = f"rm -f -- {shlex.quote(path)}" if text is None else _writing(path, mode, owner)
        if self._user != "root":
            command = f"sudo -n sh -c {shlex.quote(command)}"
        answer = self._execute(command, LINE_S, (text or "").encode())
        if answer.status != 0:
            raise self._error("refused", f"{path} was not written: {answer.text.strip()}") from first

    def _execute(self, command: str, timeout_s: float, given: bytes = b"") -> Answer:
        import paramiko

        timeout_s = self._patience(timeout_s)
        deadline = time.monotonic() + timeout_s
        try:
            channel = self._transport.open_session(timeout=timeout_s)
        except (paramiko.SSHException, EOFError, OSError) as error:
            if self._transport.is_active():
                raise self._error("refused", "the node opens no further channel") from error
            raise self._error("closed", "the connection ended") from error
        try:
            channel.settimeout(timeout_s)
            channel.exec_command(command)
            if given:
                channel.sendall(given)
            channel.shutdown_write()
            output = _all(channel.recv, channel, deadline)
            errors = _all(channel.recv_stderr, channel, deadline)
            if not channel.status_event.wait(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
        except TimeoutError as error:
            raise self._error("timeout", f"no end of {_short(command)} within {timeout_s:g} s") from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise self._error("closed", f"the connection ended during {_short(command)}") from error
        finally:
            channel.close()
        # A program ended by a signal has no status either; a lost connection ends its thread at once.
        if channel.exit_status < 0 and self._lost():
            raise self._error("closed", f"the connection ended during {_short(command)}")
        return Answer(output + errors, channel.exit_status, output)

    def _lost(self) -> bool:
        """True when the connection is gone."""
        self._transport.join(_LOST_S)
        return not self._transport.is_active()


def _all(receive: Any, channel: paramiko.Channel, deadline: float) -> str:
    """One stream up to its end."""
    pieces: list[bytes] = []
    while True:
        channel.settimeout(max(0.001, deadline - time.monotonic()))
        data = receive(1 << 16)
        if not data:
            return b"".join(pieces).decode("utf-8", "replace").replace("\r\n", "\n")
        pieces.append(data)


def _writing(path: str, mode: int, owner: str) -> str:
    """A script that writes its standard input to `path` at once."""
    beside = shlex.quote(f"{path}.{uuid.uuid4().hex[:8]}")
    steps = (
        "umask 077",
        f"cat > {beside}",
        f"chmod {mode:o} {beside}",
        f"chown {shlex.quote(owner)} {beside}",
        f"mv -f -- {beside} {shlex.quote(path)}",
    )
    return f"{' && '.join(steps)} || {{ rm -f -- {beside}; exit 1; }}"


def _short(line: str) -> str:
    first = line.strip().splitlines()[0] if line.strip() else ""
    return f"'{first[:80]}'" + ("..." if len(first) > 80 or "\n" in line.strip() else "")


# -- a device's own CLI


class CliSession(_Connected):
    """One interactive shell of a device; answers end at its prompt."""

    def __init__(
        self,
        target: Target,
        dialect: Dialect,
        transport: paramiko.Transport,
        secrets: Secrets,
        timeout_s: float,
    ) -> None:
        super().__init__(target, dialect, transport)
        self._late = self._ended = ""
        self._device = self._prepared(timeout_s)
        name = re.escape(self._device.base_prompt[:_NAME])
        self._ending = re.compile(
            rf"(?P<above>{_ABOVE})(?:\A|\n)(?P<prompt>(?:HRP_[MS])?[\[<~*]{{0,3}}{name}[^\n]{{0,250}}?[>#$%\]])"
            r"[ \t]*\Z"
        )
        self.prompt = self._device.find_prompt()
        if dialect.enable and not self.prompt.endswith("#"):
            self._enable(secrets.enable_password())
        self._home = self.prompt

    def _prepared(self, timeout_s: float) -> Lean:
        with IMPORTING:
            from netmiko.exceptions import NetmikoBaseException, ReadException

            from rdma_fabric.transport.drivers import open_driver

        try:
            return open_driver(self.dialect.driver, self._transport, self.target.host, timeout_s)
        except TransportError as error:
            raise self._error(error.kind, error.text) from error
        except (NetmikoBaseException, ReadException, ValueError) as error:
            raise self._error("timeout", f"after the login the device is not as expected: {error}") from error
        except (EOFError, OSError) as error:
            raise self._error("closed", "the device ended the session after the login") from error

    def run(self, line: str, *, timeout_s: float = LINE_S) -> Answer:
        """Type one line, or several one by one; their answers are joined."""
        timeout_s = self._patience(timeout_s)
        answers = [self._typed(one, timeout_s) for one in line.split("\n")]
        return Answer("\n".join(one.text for one in answers if one.text), asks=answers[-1].asks)

    def ask(self, questions: Iterable[str], *, timeout_s: float = LINE_S) -> dict[str, str]:
        """The answers; an answer that seemed to end early (it held a prompt) is completed."""
        timeout_s = self._patience(timeout_s)
        answers: dict[str, str] = {}
        last = ended = ""
        for question in questions:
            answer = self._typed(question, timeout_s, questions=False, late_apart=True)
            self._complete(answers, last, ended)
            answers[question] = answer.text
            last, ended = question, self._ended
        if answers:
            self._settle(timeout_s)
            self._complete(answers, last, ended)
        return answers

    def top(self) -> bool:
        """Leave configuration by the driver's own word; what is not committed is left behind."""
        word = _default(self._device, "exit_config_mode", "exit_config")
        for _ in range(6):
            if self.prompt == self._home:
                return True
            if not word:
                return False
            answer = self._typed(word, LINE_S)
            if answer.asks:
                # "commit them before exiting" is asked by some, "exit with uncommitted" by others.
                self._typed("no" if "commit them" in answer.text else "yes", LINE_S)
        return self.prompt == self._home

    def cancel(self) -> None:
        """Answer a question of the device with ^C."""
        self._device.send("\x03")
        self._settle(LINE_S)

    def _complete(self, answers: dict[str, str], question: str, ended: str) -> None:
        """Text came after what seemed to be the prompt: both belong to the answer."""
        late, self._late = self._late, ""
        if late.strip() and question:
            answers[question] = f"{answers[question]}{ended}{late}".strip("\n")

    def _typed(
        self, line: str, timeout_s: float, *, questions: bool = True, late_apart: bool = False
    ) -> Answer:
        """Type a line, see its echo, read up to the prompt."""
        if not line.strip():
            self._settle(timeout_s)
            return Answer("")
        echo = _echo(line)
        self._device.send(line + self._device.RETURN)
        text, match = self._read(echo, timeout_s, line, questions)
        before, after = (text[: match.start()], text[match.end() :]) if match else ("", text)
        late = self._without_prompts(before)
        after, asks = self._unprompted(after)
        after = self._once(after, echo)
        if late_apart:
            self._late = late
        elif late.strip():
            after = f"{late}\n{after}"
        return Answer(after.strip("\n"), asks=asks)

    def _read(
        self, echo: re.Pattern[str], timeout_s: float, line: str, questions: bool
    ) -> tuple[str, re.Match[str] | None]:
        """Everything up to a prompt (or question) that follows the echo."""
        deadline = time.monotonic() + timeout_s
        raw = ""
        while True:
            try:
                raw += self._device.receive(deadline)
            except TransportError as error:
                text = self._device.cleaned(raw)
                if error.kind == "timeout" and self._end(text) and "\n" in text:
                    return text, None  # the device echoes in its own way
                self.close()  # what comes later would be taken for the answer to the next line
                words = f"no end of {_short(line)} within {timeout_s:g} s"
                words = words if error.kind == "timeout" else f"{error.text} during {_short(line)}"
                raise self._error(error.kind, words) from error
            tail = self._device.cleaned(raw[-_TAIL:])
            if not self._ends(tail, questions):
                continue
            text = self._device.cleaned(raw)
            match = echo.search(text)
            if match and self._ends(text[match.end() :], questions):
                return text, match

    def _ends(self, text: str, questions: bool) -> bool:
        return bool(self._end(text) or (questions and _QUESTION.search(text[-_TAIL:])))

    def _end(self, text: str) -> tuple[str, re.Match[str]] | None:
        """The text before its final prompt, and the prompt; only the end is searched."""
        tail = text[-_TAIL:]
        found = self._ending.search(tail)
        return (text[: len(text) - len(tail) + found.start()], found) if found else None

    def _unprompted(self, text: str) -> tuple[str, bool]:
        """The text without its final prompt, which becomes the prompt of now; True for a question."""
        end = self._end(text)
        if end is None:
            return text, True
        before, found = end
        self.prompt, self._ended = found["prompt"], found[0]
        return before, False

    def _without_prompts(self, text: str) -> str:
        """What came before an echo, without the prompts themselves."""
        while text and (end := self._end(text)):
            text = end[0]
        return text

    def _once(self, text: str, echo: re.Pattern[str]) -> str:
        """Without a second echo: devices that fall behind show prompt and line again."""
        first, newline, rest = text.lstrip("\n").partition("\n")
        match = echo.search(first)
        if (
            match
            and newline
            and not first[match.end() :].strip()
            and self._ending.search(first[: match.start()])
        ):
            return rest
        return text

    def _settle(self, timeout_s: float) -> None:
        """Press Enter and read until nothing is outstanding; what came late is kept."""
        self._device.send(self._device.RETURN)
        deadline = time.monotonic() + timeout_s
        raw = ""
        while True:
            try:
                raw += self._device.receive(deadline)
            except TransportError as error:
                raise self._error(error.kind, f"{error.text} after Enter") from error
            text = self._device.cleaned(raw)
            if not self._end(text):
                continue
            rest, _ = self._unprompted(text)
            if not rest.strip() or self._end(rest):
                self._late = self._without_prompts(rest)
                return

    def _enable(self, password: str) -> None:
        """Enter privileged mode by the driver's own word."""
        word = _default(self._device, "enable", "cmd") or "enable"
        answer = self._typed(word, LOGIN_S)
        if answer.asks and _SECRET.search(answer.text):
            if not password:
                raise self._error("auth", f"{word} asks for a password: set FABRIC_ENABLE_PASSWORD")
            self._device.send(password + self._device.RETURN)
            self._after_secret(word)
        if not self.prompt.endswith("#"):
            raise self._error("auth", f"{word} was refused")

    def _after_secret(self, word: str) -> None:
        """Read up to a prompt, or the next question, which means no."""
        deadline = time.monotonic() + LOGIN_S
        raw = ""
        while True:
            try:
                raw += self._device.receive(deadline)
            except TransportError as error:
                raise self._error("auth", f"{word} was refused") from error
            text = self._device.cleaned(raw)
            if _SECRET.search(text):
                raise self._error("auth", f"the password of {word} was refused")
            if self._end(text):
                self._unprompted(text)
                return


def _echo(line: str) -> re.Pattern[str]:
    """The typed line as the terminal shows it; long ones may be broken at the right edge."""
    plain = line.strip()
    if len(plain) > _LONG_LINE:
        return re.compile(r"\s*".join(map(re.escape, plain.replace(" ", ""))))
    return re.compile(r"[ \t]+".join(map(re.escape, plain.split())))


def _default(device: Lean, method: str, parameter: str) -> str:
    """The driver's own word for something, from the signature of its method."""
    found = getattr(device, method, None)
    if found is None:
        return ""
    option = inspect.signature(found).parameters.get(parameter)
    return option.default if option is not None and isinstance(option.default, str) else ""
