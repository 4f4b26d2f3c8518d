"""Starts, steers and stops a lab. Light: the SSH server runs in a process of its own.

Everything of a lab lies in `DIRECTORY/.fabric/lab/` (0700):
nodes.json       name -> host, port, username, key_file, platform, kind (see Endpoint)
known_hosts      one ed25519 host key per node, for OpenSSH and paramiko
id_ed25519       the key that every node accepts, for any user name (with .pub)
server.log       the server's log; holds no typed line
control.sock     the control socket; server.lock is held while the server lives
state.json       devices' state, written by `down(keep=True)` only
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rdma_fabric.lab.ailments import Ailment
from rdma_fabric.lab.breaks import Break, BreakError, Mishap
from rdma_fabric.lab.control import ControlError, call
from rdma_fabric.lab.simulators._contract import DeviceFacts, PortFact

LOCK = "server.lock"
LOG = "server.log"
NODES = "nodes.json"
KNOWN_HOSTS = "known_hosts"
KEY = "id_ed25519"
KEPT = "state.json"
USER = "admin"
"""Login on simulated switches; a sandboxed host is entered as its root."""
HOST_USER = "root"


class LabError(Exception):
    """The lab cannot do what was asked; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class LabNode:
    """One node of a lab.

    A switch is simulated after `facts`; a host is a sandbox made by `lab.hosts`, which also gets
    `host`, plain JSON data. `host["ib"]` are the node's InfiniBand ports: of a host netdev -> guid and
    ibdev, of a switch port -> number. `mgmt` is the node's planned management address, for the display only.
    """

    facts: DeviceFacts
    kind: Literal["switch", "host"] = "switch"
    mgmt: str = ""
    host: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The node as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LabNode:
        """Take back what `to_json` gave."""
        facts = dict(data["facts"])
        facts["ports"] = tuple(PortFact(**port) for port in facts["ports"])
        facts["seed"] = tuple(facts["seed"])
        return cls(DeviceFacts(**facts), data["kind"], data["mgmt"], data["host"])


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a node listens and how to log in (a password also works when `up` was given one)."""

    host: str
    port: int
    username: str
    key_file: str
    platform: str
    kind: str


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What a node of a running lab does now; `held` are the lines that wait for `release`.

    `ailments` are the words of what ails its ports.
    """

    endpoint: Endpoint
    mgmt: str = ""
    logins: int = 0
    refused_logins: int = 0
    connections: int = 0
    breaks: tuple[Break, ...] = ()
    held: tuple[str, ...] = ()
    error: str = ""
    ailments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabInfo:
    """A running lab; `skipped` are nodes that it cannot play, with the reason."""

    directory: Path
    pid: int
    nodes: Mapping[str, NodeStatus]
    skipped: Mapping[str, str]

    @property
    def state(self) -> Path:
        """The lab's state folder."""
        return state_folder(self.directory)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line that a client sent: seconds since the lab started, login number, shell | exec | sftp."""

    at: float
    login: int
    user: str
    channel: str
    line: str


def state_folder(directory: Path) -> Path:
    """Where a lab keeps its state."""
    return directory.absolute() / ".fabric" / "lab"


def up(
    directory: Path,
    nodes: Sequence[LabNode],
    *,
    password: str | None = None,
    keep: bool = False,
    timeout: float = 120.0,
) -> LabInfo:
    """Start a lab in the background and wait until it listens.

    Nodes log in by the lab's key, and by `password` if one is given (it goes to the server through
    a pipe and is written nowhere). Devices are blank, or with `keep` as the last `down(keep=True)`
    left them. Raises LabError.
    """
    state = _prepare(directory)
    if _alive(state):
        raise LabError(f"a lab is already up in {state}: take it down first")
    names = [node.facts.name for node in nodes]
    if len(names) != len(set(names)):
        raise LabError("two nodes of the lab have the same name")
    if not keep:
        (state / KEPT).unlink(missing_ok=True)
    request = {
        "state": str(state),
        "password": password,
        "keep": keep,
        "nodes": [node.to_json() for node in nodes],
    }
    with (state / LOG).open("ab") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "rdma_fabric.lab.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
        )
    said = _hand_over(server, json.dumps(request).encode(), timeout)
    if said.get("ready") is not True:
        _signal(state, signal.SIGTERM)
        raise LabError(f"the lab did not start: {said.get('error', f'see {state / LOG}')}")
    found = status(directory)
    if found is None:
        raise LabError(f"the lab stopped at once: see {state / LOG}")
    return found


def down(directory: Path, *, keep: bool = False, timeout: float = 30.0) -> bool:
    """Stop the lab; `keep` saves the devices' state for `up(keep=True)`. False when none was up."""
    state = state_folder(directory)
    if not _alive(state):
        return False
    try:
        call(state, "stop", timeout, keep=keep)
    except ControlError as error:
        if keep:
            raise LabError(f"the state of the devices could not be kept: {error}") from error
        _signal(state, signal.SIGTERM)
    if not _wait_for_end(state, timeout):
        _signal(state, signal.SIGKILL)
        if not _wait_for_end(state, 5.0):
            raise LabError(f"the lab in {state} does not stop")
    for name in (NODES, KNOWN_HOSTS, KEY, f"{KEY}.pub"):
        (state / name).unlink(missing_ok=True)
    return True


def status(directory: Path) -> LabInfo | None:
    """The running lab of the directory, or None."""
    state = state_folder(directory)
    if not _alive(state):
        return None
    found = _ask(directory, "status")
    nodes = {}
    for name, data in found["nodes"].items():
        data["endpoint"] = Endpoint(**data["endpoint"])
        data["breaks"] = tuple(Break.from_json(fault) for fault in data["breaks"])
        data["held"] = tuple(data["held"])
        data["ailments"] = tuple(data["ailments"])
        nodes[name] = NodeStatus(**data)
    return LabInfo(directory, found["pid"], nodes, found["skipped"])


def endpoints(directory: Path) -> Mapping[str, Endpoint]:
    """Addresses and logins of the lab's nodes, read from nodes.json; LabError when there is none."""
    path = state_folder(directory) / NODES
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise LabError(f"no lab is up in {directory}: start one with 'fabric lab up'") from error
    return {name: Endpoint(**endpoint) for name, endpoint in data.items()}


def known_hosts(directory: Path) -> Path:
    """The file with the host keys of the lab's nodes."""
    return state_folder(directory) / KNOWN_HOSTS


def reboot(directory: Path, node: str, *, seconds: float = 0.0) -> None:
    """Reboot a node: connections are cut, unsaved configuration is lost, it is away for `seconds`."""
    _ask(directory, "reboot", node=node, seconds=seconds)


def somebody(directory: Path, node: str, lines: Sequence[str]) -> str:
    """Another administrator types `lines` on the node, at once; returns what the node answered."""
    return str(_ask(directory, "somebody", node=node, lines=list(lines)))


def infiniband(directory: Path, line: str) -> None:
    """One line for ibsim's console: `Unlink "leaf1"[3]`, `ReLink "leaf1"[3]`, `Link "a"[1] "b"[2]`."""
    _ask(directory, "infiniband", line=line)


def running(directory: Path, node: str) -> str:
    """The running configuration of a switch as text."""
    return str(_ask(directory, "running", node=node))


def break_(
    directory: Path,
    node: str,
    kind: str,
    pattern: str = "",
    *,
    seconds: float = 0.0,
    after: bool = False,
    times: int = 0,
) -> Break:
    """Put a fault in force on a node (kinds and parts: `breaks.Break`); LabError when it cannot be."""
    try:
        fault = Break(kind, pattern, seconds, after, times)
    except BreakError as error:
        raise LabError(str(error)) from error
    _ask(directory, "break", node=node, fault=fault.to_json())
    return fault


def mishap(directory: Path, node: str, kind: str, words: Sequence[str]) -> str:
    """Let something befall a host (kinds: `breaks.Mishap`); returns what it did, LabError says why not."""
    try:
        fault = Mishap(kind, tuple(words))
    except BreakError as error:
        raise LabError(str(error)) from error
    return str(_ask(directory, "mishap", node=node, kind=fault.kind, words=list(fault.words)))


def ail(directory: Path, node: str, kind: str, words: Sequence[str]) -> Ailment:
    """Let something ail a port until `mend` (kinds: `ailments.Ailment`); LabError when it cannot be."""
    try:
        found = Ailment.of(kind, tuple(words))
    except BreakError as error:
        raise LabError(str(error)) from error
    _ask(directory, "ail", node=node, ailment=asdict(found))
    return found


def mend(directory: Path, node: str, kind: str = "") -> None:
    """End a node's faults and ailments (of one kind); held lines go through."""
    _ask(directory, "mend", node=node, kind=kind)


def release(directory: Path, node: str) -> int:
    """Let held lines go through and end the node's `hold`; returns how many lines were waiting.

    A held line runs even when its client is gone: the device had received it.
    """
    return int(_ask(directory, "release", node=node))


def sessions(directory: Path, node: str) -> tuple[LogEntry, ...]:
    """The lines that clients sent to the node, oldest first (passwords typed at a prompt left out)."""
    return tuple(LogEntry(**entry) for entry in _ask(directory, "sessions", node=node))


def _ask(directory: Path, verb: str, **arguments: Any) -> Any:
    state = state_folder(directory)
    if not _alive(state):
        raise LabError(f"no lab is up in {directory}: start one with 'fabric lab up'")
    try:
        return call(state, verb, **arguments)
    except ControlError as error:
        raise LabError(str(error)) from error


def _prepare(directory: Path) -> Path:
    """Make the state folders, closed to others and invisible to git."""
    if not directory.is_dir():
        raise LabError(f"{directory} is not a folder")
    state = state_folder(directory)
    for folder in (state.parent, state):
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
    ignore = state.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return state


def _hand_over(server: subprocess.Popen[bytes], request: bytes, timeout: float) -> Mapping[str, Any]:
    """Give the server its request and wait for its one line of answer; it detaches itself."""
    assert server.stdin is not None and server.stdout is not None
    try:
        server.stdin.write(request)
        server.stdin.close()
    except BrokenPipeError:
        return {}
    ready, _, _ = select.select([server.stdout], [], [], timeout)
    line = server.stdout.readline() if ready else b""
    server.stdout.close()
    server.wait()
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _alive(state: Path) -> bool:
    """True while a server holds the lock of the state folder."""
    try:
        handle = os.open(state / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _signal(state: Path, number: signal.Signals) -> None:
    """Signal the server; the lock it holds proves that the recorded process is it."""
    if _alive(state):
        os.kill(int((state / LOCK).read_text()), number)


def _wait_for_end(state: Path, timeout: float) -> bool:
    end = time.monotonic() + timeout
    while _alive(state):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
