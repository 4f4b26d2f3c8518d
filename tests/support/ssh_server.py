"""A small SSH server in a thread, whose shell and commands a test writes: for what no simulator does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from rdma_fabric.transport.known_hosts import HostKey, host_name
from rdma_fabric.transport.targets import Target

Process = asyncssh.SSHServerProcess[bytes]
Handler = Callable[[Process], Awaitable[None]]


@dataclass
class Toy:
    """A CLI with a prompt: `answers` by line (bytes as sent, so chunks and escapes can be chosen)."""

    name: str = "leaf01"
    banner: bytes = b"\r\n### welcome # to > the lab ###\r\n"
    answers: dict[str, bytes | list[bytes]] = field(default_factory=dict)
    prompt: str = "{name}#"
    typed: list[str] = field(default_factory=list)
    modes: dict[str, str] = field(default_factory=dict)
    """Line -> the prompt from then on."""
    pause: float = 0.0
    """Seconds between the pieces of an answer."""
    cut: str = ""
    """The line at which the connection breaks."""
    silent: str = ""
    """The line that is never answered."""

    async def __call__(self, process: Process) -> None:
        """Serve one shell."""
        self.answers.setdefault("terminal width 511", b"Width set to 511 columns.\r\n")
        self.answers.setdefault("terminal length 0", b"Pagination disabled.\r\n")
        prompt = self.prompt
        process.stdout.write(self.banner + self._shown(prompt))
        while True:
            line = await self._line(process)
            if line is None:
                break
            self.typed.append(line)
            if self.cut and line == self.cut:
                process.channel.get_connection().abort()
                return
            prompt = self.modes.get(line, prompt)
            answer = self.answers.get(line, b"" if not line.strip() else b"did " + line.encode() + b"\r\n")
            for piece in answer if isinstance(answer, list) else [answer]:
                process.stdout.write(piece)
                await asyncio.sleep(self.pause)
            if not (self.silent and line == self.silent):
                process.stdout.write(self._shown(prompt))
        process.exit(0)

    def _shown(self, prompt: str) -> bytes:
        return prompt.format(name=self.name).encode()

    async def _line(self, process: Process) -> str | None:
        """One typed line, echoed as typed."""
        line = b""
        while True:
            try:
                char = await process.stdin.read(1)
            except (asyncssh.Error, OSError):
                return None
            if not char or char == b"\x04":
                return None
            if char == b"\x03":
                process.stdout.write(b"^C\r\n")
                return ""
            if char in b"\r\n":
                process.stdout.write(b"\r\n")
                return line.decode()
            line += char
            process.stdout.write(char)


async def run_with_sh(process: Process) -> None:
    """Commands run by this machine's shell; an interactive shell is refused."""
    if process.command is None:
        process.exit(1)
        return
    started = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        process.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, errors = await started.communicate(await process.stdin.read())
    except asyncio.CancelledError:
        started.kill()
        await started.wait()
        raise
    process.stdout.write(out)
    process.stderr.write(errors)
    if (started.returncode or 0) < 0:
        process.exit_with_signal("KILL")
    else:
        process.exit(started.returncode or 0)


class _Server(asyncssh.SSHServer):
    def __init__(self, owner: Server) -> None:
        self._owner = owner

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._owner.connections += 1
        if self._owner.connections <= self._owner.hang_up_first:
            conn.abort()

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        self._owner.logins.append((username, password))
        return password == self._owner.password


class Server:
    """The server; a context manager."""

    def __init__(
        self, handler: Handler, *, password: str = "Sesame-42", sftp: bool = False, hang_up_first: int = 0
    ) -> None:
        self.handler, self.password, self.sftp = handler, password, sftp
        self.hang_up_first = hang_up_first
        self.connections = 0
        self.logins: list[tuple[str, str]] = []
        self._key = asyncssh.generate_private_key("ssh-ed25519")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def key(self) -> HostKey:
        """The server's host key."""
        return HostKey("ssh-ed25519", self._key.public_data)

    def target(self, folder: Path, name: str = "leaf01", **more: Any) -> Target:
        """A target whose known_hosts, in `folder`, names the server's key."""
        known = folder / "known_hosts"
        known.write_text(self.key.line(host_name("127.0.0.1", self.port)) + "\n")
        return Target(name, "127.0.0.1", self.port, "ops", known_hosts=(known,), **more)

    def __enter__(self) -> Server:
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.port: int = listening.get_port()
        self._listening = listening
        return self

    async def _listen(self) -> asyncssh.SSHAcceptor:
        return await asyncssh.create_server(
            lambda: _Server(self),
            "127.0.0.1",
            0,
            server_host_keys=[self._key],
            process_factory=self.handler,
            sftp_factory=self.sftp,
            encoding=None,
            line_editor=False,
        )

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        self._listening.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
