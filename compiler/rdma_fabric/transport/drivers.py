"""netmiko's drivers without their waiting: reads block until a pattern or prompt is there.

A driver still says what its device needs after the login (paging, width, modes); only the way of
reading is ours. Drivers that read by timing wait about 2 s of silence each time otherwise.
"""

from __future__ import annotations

import codecs
import logging
import re
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import paramiko
from netmiko.channel import SSHChannel
from netmiko.exceptions import ReadTimeout
from netmiko.ssh_dispatcher import CLASS_MAPPER

from rdma_fabric.transport.errors import TransportError

# At its debug level netmiko logs every byte of a session.
logging.getLogger("netmiko").setLevel(logging.WARNING)

PROMPT_LINE: Final = re.compile(r"(?:\A|\n)[ \t]*([^\s][^\n]{0,250}[>#$%\]])[ \t]*\Z")
"""A prompt of a device that we do not know yet: the last line, ended by one of netmiko's terminators."""
_CHUNK: Final = 1 << 16
_TAIL: Final = 2_000
_WIDTH, _HEIGHT = 511, 1000
_CSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()#][0-9A-Za-z]|\x1b[=>78c-zA-Z]"
)
_LINE_ENDS = re.compile(r"\r*\n(?:\r(?!\n))?|\r+")
_ERASED = re.compile(r"[^\x08\n]\x08")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Lean(Protocol):
    """What a session uses of a driver."""

    base_prompt: str
    RETURN: str

    def receive(self, deadline: float) -> str:
        """Text that arrived, at least one character."""

    def send(self, text: str) -> None:
        """Type text."""

    def cleaned(self, text: str) -> str:
        """Text without terminal control."""

    def find_prompt(self) -> str:
        """The prompt of now."""


def open_driver(driver: str, transport: paramiko.Transport, host: str, timeout_s: float) -> Lean:
    """A prepared shell of that netmiko driver over a connection that is logged in."""
    device_type = register(driver)
    made: Any = CLASS_MAPPER[device_type](
        host=host, device_type=device_type, auto_connect=False, global_delay_factor=0.01
    )
    made.start(transport, timeout_s)
    return cast(Lean, made)


def register(driver: str) -> str:
    """Put the lean form of a driver into netmiko's class mapper; returns its device type."""
    name = f"rdma_fabric_{driver}"
    if name not in CLASS_MAPPER:
        if driver not in CLASS_MAPPER:
            raise TransportError("refused", f"netmiko has no driver {driver}")
        base = CLASS_MAPPER[driver]
        CLASS_MAPPER[name] = type(f"Lean{base.__name__}", (_LeanMixin, base), {})
    return name


# The mixin's methods replace those of whatever driver stands behind it.
if TYPE_CHECKING:
    from netmiko.base_connection import BaseConnection as _Base
else:
    _Base = object


class _LeanMixin(_Base):
    """Own reading and writing for a netmiko driver."""

    _deadline_s = 20.0
    _ahead = ""

    def start(self, transport: paramiko.Transport, timeout_s: float) -> None:
        """Open the shell and prepare the session as the driver says."""
        self._transport = transport
        self._deadline_s = timeout_s
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._modify_connection_params()
        self.establish_connection(_WIDTH, _HEIGHT)
        self.session_preparation()

    def establish_connection(self, width: int = _WIDTH, height: int = _HEIGHT) -> None:
        """A shell on the connection that is there."""
        self._channel = self._transport.open_session(timeout=self._deadline_s)
        self._channel.get_pty("vt100", width, height)
        self._channel.invoke_shell()
        self.remote_conn = self._channel
        self.channel = SSHChannel(conn=self._channel, encoding=self.encoding)
        self.special_login_handler()

    def disconnect(self) -> None:
        """End the shell; the connection belongs to the session."""
        self._channel.close()

    # -- bytes

    def receive(self, deadline: float) -> str:
        """Raw text that arrived; TransportError "timeout" after `deadline` (monotonic), or "closed"."""
        if self._ahead:
            text, self._ahead = self._ahead, ""
            return text
        channel = self._channel
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TransportError("timeout", "no answer in time")
            channel.settimeout(left)
            try:
                data = channel.recv(_CHUNK)
            except TimeoutError:
                continue
            if not data:
                raise TransportError("closed", "the device ended the session")
            text = self._decoder.decode(data)
            if text:
                return text

    def send(self, text: str) -> None:
        """Type text; it is logged nowhere."""
        channel = self._channel
        channel.settimeout(self._deadline_s)
        try:
            channel.sendall(text.encode())
        except TimeoutError as error:
            raise TransportError("timeout", "the device does not take what is typed") from error
        except OSError as error:
            raise TransportError("closed", "the device ended the session") from error

    def cleaned(self, text: str) -> str:
        """Text without escape sequences, carriage returns, and what backspaces erased."""
        if "\x1b" in text:
            text = _CSI.sub("", self.strip_ansi_escape_codes(text))
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            text = _LINE_ENDS.sub("\n", text)
        while "\x08" in text:
            shorter = _ERASED.sub("", text)
            if shorter == text:
                break
            text = shorter
        return _CONTROL.sub("", text)

    # -- what drivers call

    def write_channel(self, out_data: str) -> None:
        """Type text."""
        self.send(out_data)

    def read_channel(self) -> str:
        """What has arrived by now, without waiting."""
        text, self._ahead = self._ahead, ""
        channel = self._channel
        while channel.recv_ready():
            data = channel.recv(_CHUNK)
            if not data:
                break
            text += self._decoder.decode(data)
        return self.cleaned(text)

    def clear_buffer(self, *_args: Any, **_options: Any) -> str:
        """Drop what has arrived by now."""
        return self.read_channel()

    def read_until_pattern(
        self,
        pattern: str = "",
        read_timeout: float = 10.0,
        re_flags: int = 0,
        max_loops: int | None = None,
    ) -> str:
        """Text up to the end of the first match; what follows stays for the next read."""
        wanted = re.compile(pattern, re_flags)
        found = self._until(lambda text: wanted.search(text), read_timeout, pattern)
        match = wanted.search(found)
        assert match is not None
        self._ahead = found[match.end() :]
        return found[: match.end()]

    def read_channel_timing(
        self, last_read: float = 2.0, read_timeout: float = 120.0, *_args: Any, **_options: Any
    ) -> str:
        """Text up to the next prompt; drivers without a pattern wait for silence otherwise."""
        return self._until(PROMPT_LINE.search, read_timeout, "a prompt")

    def _test_channel_read(self, count: int = 40, pattern: str = "") -> str:
        """Wait for the first prompt; a banner may hold any character of the driver's pattern."""
        return self._until(PROMPT_LINE.search, self._deadline_s, "a prompt")

    def find_prompt(self, delay_factor: float = 1.0, pattern: str | None = None) -> str:
        """The last line after Enter, twice the same: what came late from before is not taken for it."""
        before = ""
        for _ in range(6):
            self.send(self.RETURN)
            found = PROMPT_LINE.search(self._until(PROMPT_LINE.search, self._deadline_s, "a prompt"))
            assert found is not None
            if found[1] == before:
                return before
            before = found[1]
        raise TransportError("refused", "the device shows another prompt after every Enter")

    def _until(self, ends: Any, seconds: float, what: str) -> str:
        deadline = time.monotonic() + (min(seconds, self._deadline_s) or self._deadline_s)
        text = ""
        while True:
            try:
                text += self.receive(deadline)
            except TransportError as error:
                if error.kind == "timeout":
                    raise ReadTimeout(f"{what} did not come") from error
                raise
            clean = self.cleaned(text)
            if ends(clean):
                return clean
