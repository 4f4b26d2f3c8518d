"""Runs a process inside a host's sandbox for one SSH channel, as sshd would."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Sequence
from contextlib import suppress

import asyncssh

Channel = asyncssh.SSHServerProcess[bytes]
_CHUNK = 1 << 16
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ")


async def spawn(channel: Channel, argv: Sequence[str]) -> int:
    """Run argv with the channel as its terminal or pipes; returns the exit status (128+n: signal n)."""
    if channel.term_type is None:
        return await _piped(channel, argv)
    return await _on_terminal(channel, argv)


async def output(argv: Sequence[str]) -> str:
    """What argv prints, both streams together."""
    return (await ended(argv))[1]


async def ended(argv: Sequence[str]) -> tuple[int, str]:
    """Exit status of argv, and what it prints, both streams together."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=_environment({}),
        umask=0o022,
    )
    printed, _ = await process.communicate()
    return _status(process.returncode or 0), printed.decode(errors="replace")


def _environment(more: dict[str, str]) -> dict[str, str]:
    """The sandbox sees no variable of the user but the path and the language."""
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | more


async def _piped(channel: Channel, argv: Sequence[str]) -> int:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment({}),
        umask=0o022,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    feeding = asyncio.create_task(_feed(channel, process.stdin))
    try:
        await asyncio.gather(
            _copy(process.stdout, channel.stdout),
            _copy(process.stderr, channel.stderr),
        )
        return _status(await process.wait())
    finally:
        feeding.cancel()


async def _on_terminal(channel: Channel, argv: Sequence[str]) -> int:
    """The same with a pseudo-terminal; `setsid --ctty` (util-linux) makes it the controlling one."""
    ours, theirs = os.openpty()
    _resize(ours, channel.term_size)
    try:
        process = await asyncio.create_subprocess_exec(
            "setsid",
            "--ctty",
            "--wait",
            *argv,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=_environment({"TERM": channel.term_type or "dumb"}),
            umask=0o022,
        )
    finally:
        os.close(theirs)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    source, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(ours), "rb", 0)
    )
    sink, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(ours, "wb", 0)
    )
    writer = asyncio.StreamWriter(sink, protocol, None, loop)
    feeding = asyncio.create_task(_feed(channel, writer, ours))
    copying = asyncio.create_task(_copy(reader, channel.stdout))
    try:
        status = await process.wait()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(copying, 1.0)
        return _status(status)
    finally:
        feeding.cancel()
        copying.cancel()
        source.close()
        sink.abort()


async def _feed(channel: Channel, sink: asyncio.StreamWriter, terminal: int | None = None) -> None:
    """Client to process; the client's end of input closes the process's input (^D on a terminal)."""
    with suppress(BrokenPipeError, ConnectionError):
        while True:
            try:
                data = await channel.stdin.read(_CHUNK)
            except asyncssh.TerminalSizeChanged as change:
                if terminal is not None:
                    size = (change.width, change.height, change.pixwidth, change.pixheight)
                    _resize(terminal, size)
                continue
            except (asyncssh.BreakReceived, asyncssh.SignalReceived):
                continue
            if not data:
                break
            sink.write(data)
            await sink.drain()
    if terminal is None:
        sink.close()
    else:
        sink.write(b"\x04")


async def _copy(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
    """Process to client until the process closes; a terminal ends with EIO (pty(7))."""
    with suppress(OSError, asyncssh.Error):
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()


def _resize(terminal: int, size: tuple[int, int, int, int]) -> None:
    width, height, pixels_wide, pixels_high = size
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, pixels_wide, pixels_high))


def _status(code: int) -> int:
    return code if code >= 0 else 128 - code
