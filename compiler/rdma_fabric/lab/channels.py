"""What the lab does on the connections and channels of one node."""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import asyncssh

from rdma_fabric.lab.breaks import Breaks, parts
from rdma_fabric.lab.discovery import device_class
from rdma_fabric.lab.fabric import Endpoint, LabNode, LogEntry
from rdma_fabric.lab.hosttools.health import Health
from rdma_fabric.lab.processes import Channel, spawn
from rdma_fabric.lab.simulators._contract import Clock, Device, Reply, Result, Session
from rdma_fabric.lab.terminal import Editor, Typed, ended, wire

_LOG = logging.getLogger("rdma_fabric.lab")
_LINES_KEPT = 20_000
T = TypeVar("T")


class Host(Protocol):
    """What `lab.hosts` gives for one host: a sandbox."""

    ibsim: str
    """Name under which the lab's ibsim is reached."""

    def start(self) -> None:
        """Make the sandbox; OSError or RuntimeError when this machine cannot."""

    def stop(self) -> None:
        """Take its power away; its files stay."""

    def erase(self) -> None:
        """Forget the files of a stopped sandbox."""

    def argv(self, command: str | None, user: str = "root") -> list[str]:
        """What to run for a login shell (None) or one command; an account that it does not know is root."""

    def sftp_argv(self) -> list[str]:
        """What to run for the sftp subsystem."""

    def files(self, path: str) -> bytes:
        """Content of a file as the host sees it."""

    def tell(self, health: Mapping[str, Any]) -> None:
        """Let its tools know what its ports count and what ails them."""


class Dropped(Exception):
    """A break cuts the connection here."""


@dataclass
class Node:
    """One node of the lab: who it is, what is broken, who is connected."""

    name: str
    plan: LabNode
    endpoint: Endpoint
    key: asyncssh.SSHKey
    clock: Clock
    device: Device | None = None
    host: Host | None = None
    breaks: Breaks = field(default_factory=Breaks)
    listener: socket.socket | None = None
    options: asyncssh.SSHServerConnectionOptions | None = None
    connections: set[asyncssh.SSHServerConnection] = field(default_factory=set)
    held: dict[asyncio.Future[None], str] = field(default_factory=dict)
    lines: deque[LogEntry] = field(default_factory=lambda: deque(maxlen=_LINES_KEPT))
    logins: int = 0
    refused: int = 0
    away: bool = False
    error: str = ""
    health: Health = field(init=False)
    """What its ports have counted and what ails them; the lab's nodes are used, not new."""

    def __post_init__(self) -> None:
        """Counters start with the history of a used node."""
        self.health = Health(self.name, self.clock, worn=True)

    def simulator(self) -> Device:
        """The simulated device, made when first asked for and up to the clock."""
        if self.device is None:
            try:
                made = device_class(self.plan.facts.platform)
                self.device = made(self.plan.facts, self.clock, health=self.health)
            except Exception as error:
                self.error = f"{type(error).__name__}: {error}"
                raise
        self.device.tick()
        return self.device

    def commits(self, line: str) -> bool:
        """True for a line that makes a candidate live."""
        return self.device is not None and self.device.commits(line)

    def note(self, login: int, user: str, channel: str, line: str) -> None:
        """Remember what a client sent."""
        self.lines.append(LogEntry(round(self.clock(), 3), login, user, channel, line))

    async def through(
        self, line: str, execute: Callable[[str], Awaitable[T]], refuse: Callable[[str], T], nothing: T
    ) -> T:
        """Run one line past the breaks; raises Dropped where the connection has to go."""
        taken = self.breaks.take(line, self.commits(line))
        for fault in taken:
            if fault.kind == "slow":
                await asyncio.sleep(fault.seconds)
            elif fault.kind == "hold" and not fault.after:
                await self._hold(line)
            elif fault.kind == "drop" and not fault.after:
                raise Dropped(line)
            elif fault.kind == "refuse":
                return refuse(line)
            elif fault.kind == "ignore":
                return nothing
        answer = await execute(line)
        for fault in taken:
            if fault.kind == "hold" and fault.after:
                await self._hold(line)
            elif fault.kind == "drop" and fault.after:
                raise Dropped(line)
        return answer

    async def _hold(self, line: str) -> None:
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.held[gate] = line
        try:
            await gate
        finally:
            self.held.pop(gate, None)

    def let_go(self) -> int:
        """Let the held lines through; returns how many there were."""
        gates = [gate for gate in self.held if not gate.done()]
        for gate in gates:
            gate.set_result(None)
        return len(gates)

    def cut(self) -> None:
        """Cut all connections."""
        for connection in tuple(self.connections):
            connection.abort()


# --- one login -----------------------------------------------------------------------------------


class Login(asyncssh.SSHServer):
    """One SSH connection to a node: the lab's key or the lab's password, any user name."""

    def __init__(self, node: Node, public: bytes, password: str | None) -> None:
        self._node, self._public, self._password = node, public, password
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Remember the connection so that it can be cut."""
        self._connection = conn
        self._node.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        if self._connection is not None:
            self._node.connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        """Every login needs a key or a password."""
        return True

    def auth_completed(self) -> None:
        """Count the login."""
        self._node.logins += 1

    def public_key_auth_supported(self) -> bool:
        """The lab's key is always good."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Only the lab's own key."""
        return self._counted(key.public_data == self._public)

    def password_auth_supported(self) -> bool:
        """Only when the lab was given a password."""
        return self._password is not None

    def validate_password(self, username: str, password: str) -> bool:
        """The lab's password, compared in constant time."""
        given, wanted = password.encode(), (self._password or "").encode()
        return self._counted(self._password is not None and hmac.compare_digest(given, wanted))

    def session_requested(self) -> HostSession:
        """A channel of a host; those of switches have factories in the options."""
        return HostSession(self._node)

    def _counted(self, good: bool) -> bool:
        self._node.refused += not good
        return good


# --- channels of switches ------------------------------------------------------------------------


async def serve_switch(node: Node, channel: Channel) -> None:
    """One channel of a simulated device: a shell, or one command."""
    user = str(channel.get_extra_info("username"))
    login = node.logins
    try:
        if channel.subsystem is not None:
            channel.stderr.write(f"subsystem {channel.subsystem} is not there\n".encode())
            channel.exit(1)
        elif channel.command is not None:
            node.note(login, user, "exec", channel.command)
            result = await run_command(node, user, channel.command)
            channel.stdout.write(result.stdout.encode())
            channel.stderr.write(result.stderr.encode())
            channel.exit(result.status)
        else:
            await Shell(node, channel, user, login).run()
    except Dropped:
        channel.channel.get_connection().abort()


async def run_command(node: Node, user: str, command: str) -> Result:
    """One command of an exec channel; only the pieces on which a break works are treated apart."""

    async def execute(text: str) -> Result:
        return node.simulator().execute(user, text)

    def refuse(text: str) -> Result:
        return Result(stderr=ended(node.simulator().refusal(text)), status=1)

    node.simulator()
    total = Result()
    for part in parts(command, lambda text: node.breaks.hit(text, node.commits(text))):
        if (part.joint == "&&" and total.status) or (part.joint == "||" and not total.status):
            continue
        text = part.text.replace("$?", str(total.status), 1) if part.joint else part.text
        if part.broken:
            one = await node.through(text, execute, refuse, Result())
        else:
            one = await execute(text)
        total = Result(total.stdout + one.stdout, total.stderr + one.stderr, one.status)
    return total


class Shell:
    """An interactive login on a simulated device: echo, prompt, one line after the other."""

    def __init__(self, node: Node, channel: Channel, user: str, login: int) -> None:
        self._node, self._channel, self._user, self._login = node, channel, user, login
        self._session: Session = node.simulator().open(user)
        self._terminal = channel.term_type is not None
        self._editor = Editor(echo=self._terminal and self._session.echo)
        self._out: list[str] = []

    async def run(self) -> None:
        """Serve until the device or the client ends the session."""
        session = self._session
        try:
            self._say(ended(session.banner) + session.prompt())
            while (typed := await self._typed()).key != "end":
                if typed.key == "cancel":
                    self._say(session.prompt())
                    continue
                reply = await self._line(typed.line)
                self._say(ended(reply.text))
                if reply.close or self._gone():
                    break
                self._say(session.prompt())
            self._flush()
            self._channel.exit(0)
        finally:
            session.closed()

    async def _typed(self) -> Typed:
        """The next whole line; the connection's end counts as `end`."""
        while True:
            typed = self._editor.next(self._session.secret())
            self._out.append(typed.echo)
            if typed.key != "more":
                return typed
            self._flush()
            try:
                data = await self._channel.stdin.read(1 << 16)
            except (asyncssh.TerminalSizeChanged, asyncssh.SignalReceived, asyncssh.BreakReceived):
                continue
            except (asyncssh.Error, OSError):  # the connection was cut
                return Typed("end", "")
            if not data:
                return Typed("end", "")
            self._editor.feed(data)

    async def _line(self, line: str) -> Reply:
        """Run one typed line; passwords and empty lines pass by the breaks."""
        secret = self._session.secret()
        self._node.note(self._login, self._user, "shell", "(secret)" if secret else line)
        self._node.simulator()
        if secret or not line.strip():
            return self._session.run(line)
        pieces = parts(line, lambda text: self._node.breaks.hit(text, self._node.commits(text)))
        if not any(piece.broken for piece in pieces):
            return self._session.run(line)
        self._flush()
        total, status = Reply(), 0
        for piece in pieces:
            if total.close or (piece.joint, bool(status)) in {("&&", True), ("||", False)}:
                continue
            text = piece.text.replace("$?", str(status), 1) if piece.joint else piece.text
            one, status = await self._piece(text if len(pieces) > 1 else line, piece.broken)
            total = Reply(total.text + ended(one.text), one.close)
        return total

    async def _piece(self, text: str, broken: bool) -> tuple[Reply, int]:
        """One piece of a line and its exit status, as far as a break decides it."""

        async def execute(line: str) -> tuple[Reply, int]:
            self._node.simulator()
            return self._session.run(line), 0

        def refuse(line: str) -> tuple[Reply, int]:
            return Reply(self._node.simulator().refusal(line)), 1

        if broken:
            return await self._node.through(text, execute, refuse, (Reply(), 0))
        return await execute(text)

    def _say(self, text: str) -> None:
        self._out.append(wire(text, self._terminal))

    def _flush(self) -> None:
        text = "".join(self._out)
        self._out.clear()
        if text and not self._gone():
            self._channel.stdout.write(text.encode())

    def _gone(self) -> bool:
        """True when the client cannot be reached any more."""
        return self._channel.is_closing() or self._channel.channel.get_connection().is_closed()


# --- channels of hosts ---------------------------------------------------------------------------


async def serve_host(node: Node, channel: Channel) -> None:
    """One channel of a sandboxed host: a process inside. Breaks see commands, not typed lines."""
    assert node.host is not None
    user, login = str(channel.get_extra_info("username")), node.logins
    if channel.subsystem not in (None, "sftp"):
        channel.exit(1)
        return
    line = "sftp" if channel.subsystem else channel.command or ""
    node.note(login, user, "sftp" if channel.subsystem else "exec" if line else "shell", line)
    argv = node.host.sftp_argv() if channel.subsystem else node.host.argv(channel.command, user)

    async def execute(_: str) -> int:
        return await spawn(channel, argv)

    def refuse(text: str) -> int:
        channel.stderr.write(f"{text.split()[0]}: Operation not permitted\n".encode())
        return 1

    try:
        if node.breaks.hit(line, False):
            channel.exit(await node.through(line, execute, refuse, 0))
        else:
            channel.exit(await execute(line))
    except Dropped:
        channel.channel.get_connection().abort()


class HostSession(asyncssh.SSHServerProcess[bytes]):
    """A channel of a host whose every request, sftp too, is a process in the sandbox."""

    def __init__(self, node: Node) -> None:
        super().__init__(self._serve, None, 0, False)
        self._node = node

    def subsystem_requested(self, subsystem: str) -> bool:
        """Only sftp."""
        return subsystem == "sftp"

    def session_started(self) -> None:
        """Hand every request to the sandbox; asyncssh would answer sftp itself."""
        assert self._conn is not None and self._chan is not None
        stdin = asyncssh.SSHReader[bytes](self, self._chan)
        stdout = asyncssh.SSHWriter[bytes](self, self._chan)
        stderr = asyncssh.SSHWriter[bytes](self, self._chan, asyncssh.EXTENDED_DATA_STDERR)
        started = self._start_process(stdin, stdout, stderr)
        assert started is not None
        self._conn.create_task(started)

    async def _serve(self, channel: Channel) -> None:
        with logged(self._node):
            await serve_host(self._node, channel)


@contextmanager
def logged(node: Node) -> Iterator[None]:
    """asyncssh ends a connection whose handler fails, but says why at its debug level only."""
    try:
        yield
    except Exception:
        _LOG.exception("%s: a channel failed", node.name)
        raise
