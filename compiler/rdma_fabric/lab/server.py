"""The lab's background process: SSH listeners for all nodes, and the control socket.

Started by `fabric.up` as `python -m rdma_fabric.lab.server`: reads its request (state folder, nodes,
password) as JSON from standard input, answers one JSON line, detaches and serves until `stop`.

Every node has an address of its own in 127.66.0.0/15 and up, and all share one port that was free;
where such addresses cannot be used (macOS) every node has a port of its own on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import importlib
import json
import logging
import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import asyncssh

from rdma_fabric.lab import asking, control, fabric
from rdma_fabric.lab.addresses import allow_files, bind, bound
from rdma_fabric.lab.ailments import AILMENTS, OF_INFINIBAND, Ailment, afflict, heal, shown
from rdma_fabric.lab.breaks import Break, BreakError
from rdma_fabric.lab.channels import Host, Login, Node, logged, serve_switch
from rdma_fabric.lab.control import ControlError
from rdma_fabric.lab.discovery import device_class
from rdma_fabric.lab.fabric import Endpoint, LabError, LabNode, NodeStatus
from rdma_fabric.lab.hosttools.store import HOME
from rdma_fabric.lab.ibsim import Ibsim, has_infiniband, place
from rdma_fabric.lab.processes import Channel, ended, output
from rdma_fabric.lab.sftp import DeviceFiles

_LOG = logging.getLogger("rdma_fabric.lab")
_TICK_SECONDS = 0.5


class Lab:
    """All nodes, their listeners, and what the control socket can ask for."""

    def __init__(self, state: Path, plans: list[LabNode], password: str | None, keep: bool = False) -> None:
        self._state, self._plans, self._password = state, plans, password
        self._kept = keep
        self._born = time.monotonic()
        self._client_key = asyncssh.generate_private_key("ssh-ed25519", "fabric lab")
        self._nodes: dict[str, Node] = {}
        self._skipped: dict[str, str] = {}
        self._ibsim: Ibsim | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._doors: list[asyncio.Server] = []
        self.stopped = asyncio.Event()

    def clock(self) -> float:
        """Seconds since the lab (or the one whose state it took over) started."""
        return time.monotonic() - self._born

    async def start(self) -> None:
        """Make nodes, keys and listeners, write the files that clients need."""
        hosts = self._make_nodes()
        if has_infiniband(self._plans):
            self._start_infiniband()
        await self._start_hosts(hosts)
        self._restore()
        await self._open_doors(hosts)
        self._write_files()
        for node in self._nodes.values():
            self._listen(node)
        self._task(self._tick())

    def _make_nodes(self) -> list[Node]:
        """Bind an address per node; nodes without a simulator are skipped. Returns the hosts."""
        plans = []
        for plan in self._plans:
            try:
                if plan.kind == "switch":
                    device_class(plan.facts.platform)
                plans.append(plan)
            except LookupError as error:
                self._skipped[plan.facts.name] = str(error)
        allow_files(len(plans))
        for plan, listener in zip(plans, bind(len(plans)), strict=True):
            facts = plan.facts
            host, port = listener.getsockname()
            key_file = str(self._state / fabric.KEY)
            user = fabric.HOST_USER if plan.kind == "host" else fabric.USER
            endpoint = Endpoint(host, port, user, key_file, facts.platform, plan.kind)
            key = asyncssh.generate_private_key("ssh-ed25519")
            self._nodes[facts.name] = Node(facts.name, plan, endpoint, key, self.clock, listener=listener)
        return [node for node in self._nodes.values() if node.plan.kind == "host"]

    def _start_infiniband(self) -> None:
        """Start ibsim; where it is not there the hosts' InfiniBand ports are dead, and status says so."""
        self._ibsim = Ibsim(self._state / "ibsim")
        try:
            self._ibsim.start(self._plans)
        except LabError as error:
            self._ibsim = None
            self._skipped["(InfiniBand)"] = str(error)

    async def _start_hosts(self, nodes: list[Node]) -> None:
        """Start the sandboxes, a few at a time; hosts that cannot be are skipped with the reason."""
        if not nodes:
            return
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(4) as pool:
            started = [loop.run_in_executor(pool, self._start_host, node) for node in nodes]
            reasons = await asyncio.gather(*started)
        for node, reason in zip(nodes, reasons, strict=True):
            if reason:
                self._skipped[node.name] = reason
                assert node.listener is not None
                node.listener.close()
                del self._nodes[node.name]

    async def _open_doors(self, nodes: list[Node]) -> None:
        """Listen for what tools in the sandboxes ask of the fabric."""
        around = asking.Fabric(self._plans, self._nodes)

        async def answer(sender: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
            known = {"packet": around.packet, "serve": around.serve, "connect": around.connect}
            wanted = known.get(str(request["ask"]))
            return await wanted(sender, request) if wanted else {}

        for node in nodes:
            root = self._state / "hosts" / node.name / "root"
            door = await asking.listen(root, partial(answer, node.name))
            if door is not None:
                self._doors.append(door)

    def _start_host(self, node: Node) -> str:
        """Start one sandbox; returns why it cannot be, or nothing."""
        try:
            node.host = make_host(node.plan, self._state / "hosts" / node.name)
            if not self._kept:
                node.host.erase()
            if self._ibsim is not None:
                node.host.ibsim = self._ibsim.socket
            node.host.start()
            self._tell(node)
        except (OSError, RuntimeError) as error:
            return f"no sandbox: {error}"
        return ""

    def _restore(self) -> None:
        """Take over the state that the last lab kept, if it was asked to."""
        path = self._state / fabric.KEPT
        if not path.exists():
            return
        kept = json.loads(path.read_text())
        self._born = time.monotonic() - kept["clock"]
        for name, health in kept.get("health", {}).items():
            if name in self._nodes:
                self._nodes[name].health.load(health)
                self._tell(self._nodes[name])
        for name, data in kept["devices"].items():
            node = self._nodes.get(name)
            if node is not None and node.plan.kind == "switch":
                device = node.simulator()
                device.restore(data["state"])
                device.files.clear()
                device.files.update({path: base64.b64decode(text) for path, text in data["files"].items()})

    def _keep(self) -> None:
        """Write the devices' state for the next lab."""
        devices = {
            node.name: {
                "state": node.device.dump(),
                "files": {path: base64.b64encode(data).decode() for path, data in node.device.files.items()},
            }
            for node in self._nodes.values()
            if node.device is not None
        }
        health = {node.name: node.health.to_json() for node in self._nodes.values()}
        kept = {"clock": self.clock(), "devices": devices, "health": health}
        _write(self._state / fabric.KEPT, json.dumps(kept).encode())

    def _write_files(self) -> None:
        """Host keys, client key and addresses, readable for the owner only."""
        known = [_known_host(node) for node in self._nodes.values()]
        _write(self._state / fabric.KNOWN_HOSTS, "".join(known).encode())
        _write(self._state / fabric.KEY, self._client_key.export_private_key("openssh"))
        _write(self._state / f"{fabric.KEY}.pub", self._client_key.export_public_key("openssh"))
        nodes = {node.name: asdict(node.endpoint) for node in self._nodes.values()}
        _write(self._state / fabric.NODES, json.dumps(nodes, indent=1).encode())

    # --- listening ---

    def _listen(self, node: Node) -> None:
        """Start to accept connections of a node."""
        if node.listener is None:
            node.listener = bound(node.endpoint.host, node.endpoint.port)
        node.listener.listen(64)
        asyncio.get_running_loop().add_reader(node.listener, self._accept, node)

    def _leave(self, node: Node) -> None:
        """Refuse connections of a node and cut those that are open."""
        if node.listener is not None:
            asyncio.get_running_loop().remove_reader(node.listener)
            node.listener.close()
            node.listener = None
        node.cut()

    def _accept(self, node: Node) -> None:
        """Take all connections that wait."""
        while node.listener is not None:
            try:
                peer, _ = node.listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                _LOG.warning("%s: %s", node.name, error)
                return
            peer.setblocking(False)
            # Each keystroke's echo is a small packet; without this Nagle's algorithm holds it back.
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._task(self._converse(node, peer))

    async def _converse(self, node: Node, peer: socket.socket) -> None:
        """Speak SSH on an accepted connection."""
        loop = asyncio.get_running_loop()
        try:
            if node.plan.kind == "switch":
                node.simulator()
            options = node.options = node.options or self._options(node)
            await loop.connect_accepted_socket(lambda: asyncssh.SSHServerConnection(loop, options), peer)
        except OSError:
            peer.close()
        except Exception:
            peer.close()
            raise

    def _options(self, node: Node) -> asyncssh.SSHServerConnectionOptions:
        """How a node speaks SSH; made once per node, at its first connection."""
        public, switch = self._client_key.public_data, node.plan.kind == "switch"

        async def process(channel: Channel) -> None:
            with logged(node):
                await serve_switch(node, channel)

        def files(channel: asyncssh.SSHServerChannel[bytes]) -> asyncssh.SFTPServer:
            user = str(channel.get_extra_info("username"))
            node.note(node.logins, user, "sftp", "sftp")
            return DeviceFiles(channel, node.simulator(), user)

        return asyncssh.SSHServerConnectionOptions(
            server_factory=lambda: Login(node, public, self._password),
            server_host_keys=[node.key],
            process_factory=process if switch else None,
            sftp_factory=files if switch else None,
            allow_scp=switch,
            encoding=None,
            line_editor=False,
            agent_forwarding=False,
            x11_forwarding=False,
            compression_algs=None,
            gss_host=None,
        )

    # --- time ---

    async def _tick(self) -> None:
        """Let due timers fire also while nobody looks."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            for node in self._nodes.values():
                if node.device is not None:
                    node.device.tick()
                if self._ibsim is not None and node.health.rates:
                    self._count_infiniband(node, self._ibsim)

    def _count_infiniband(self, node: Node, ibsim: Ibsim) -> None:
        """Hand the counters that grow to ibsim, where the real tools read them."""
        plan = node.plan.host.get("ib", {})
        for port, counters in node.health.rates.items():
            for name in counters:
                if port in plan and name in OF_INFINIBAND:
                    where = place(node.plan, port)
                    ibsim.count(*where, OF_INFINIBAND[name], node.health.count(port, name))

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("a connection failed", exc_info=error)

    # --- control ---

    async def control(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Answer one request of the control socket."""
        if verb == "stop":
            return self.stop(bool(arguments["keep"]))
        if verb == "status":
            return self._status()
        if verb == "infiniband":
            return self._infiniband(str(arguments["line"]))
        node = self._nodes.get(arguments["node"])
        if node is None:
            raise ControlError(f"the lab has no node {arguments['node']}")
        verbs: dict[str, Callable[[Node, Mapping[str, Any]], Awaitable[Any]]] = {
            "reboot": self._reboot,
            "somebody": self._somebody,
            "running": self._running,
            "break": self._break,
            "mishap": self._mishap,
            "ail": self._ail,
            "mend": self._mend,
            "release": self._release,
            "sessions": self._sessions,
        }
        if verb not in verbs:
            raise ControlError(f"the lab cannot '{verb}'")
        return await verbs[verb](node, arguments)

    def _infiniband(self, line: str) -> None:
        try:
            if self._ibsim is None:
                raise LabError("the lab has no InfiniBand")
            self._ibsim.command(line)
        except LabError as error:
            raise ControlError(str(error)) from error

    def stop(self, keep: bool) -> bool:
        """Keep the devices' state if asked, then end the server."""
        self._kept = keep
        if keep:
            self._keep()
        self.stopped.set()
        return True

    def _status(self) -> dict[str, Any]:
        nodes = {}
        for node in self._nodes.values():
            status = NodeStatus(
                node.endpoint,
                node.plan.mgmt,
                node.logins,
                node.refused,
                len(node.connections),
                node.breaks.active(),
                tuple(node.held.values()),
                node.error,
                shown(node.health),
            )
            nodes[node.name] = asdict(status)
        return {"pid": os.getpid(), "nodes": nodes, "skipped": self._skipped}

    async def _reboot(self, node: Node, arguments: Mapping[str, Any]) -> None:
        self._leave(node)
        if node.host is not None:
            await asyncio.to_thread(node.host.stop)
            await asyncio.to_thread(node.host.start)
        else:
            node.simulator().reboot()
        node.health.restart()
        self._tell(node)
        seconds = float(arguments["seconds"])
        node.away = seconds > 0
        if node.away:
            self._task(self._come_back(node, seconds))
        else:
            self._settle(node)

    async def _come_back(self, node: Node, seconds: float) -> None:
        await asyncio.sleep(seconds)
        node.away = False
        self._settle(node)

    def _settle(self, node: Node) -> None:
        """Listen or not, as reboots and breaks want it."""
        reachable = not (node.away or node.breaks.has("unreachable"))
        if reachable and node.listener is None:
            self._listen(node)
        elif not reachable:
            self._leave(node)

    async def _somebody(self, node: Node, arguments: Mapping[str, Any]) -> str:
        lines = tuple(str(line) for line in arguments["lines"])
        if node.host is not None:
            return await output(node.host.argv("\n".join(lines)))
        return node.simulator().somebody(lines)

    async def _running(self, node: Node, _: Mapping[str, Any]) -> str:
        if node.host is not None:
            raise ControlError(f"{node.name} is a host: ask it with 'somebody'")
        return node.simulator().running()

    async def _break(self, node: Node, arguments: Mapping[str, Any]) -> None:
        fault = Break.from_json(arguments["fault"])
        if node.host is not None and fault.kind == "hold" and not fault.pattern:
            raise ControlError(f"{node.name} is a host without candidates: give hold a regular expression")
        node.breaks.add(fault)
        self._settle(node)

    async def _mishap(self, node: Node, arguments: Mapping[str, Any]) -> str:
        if node.host is None:
            raise ControlError(f"{node.name} is no host: '{arguments['kind']}' befalls hosts only")
        command = [f"{HOME}/tools/launch", "fabric-break", arguments["kind"], *arguments["words"]]
        status, text = await ended(node.host.argv(shlex.join(command)))
        if status:
            raise ControlError(text.strip())
        return text.strip()

    async def _ail(self, node: Node, arguments: Mapping[str, Any]) -> None:
        try:
            changed = afflict(node, Ailment(**arguments["ailment"]), self._nodes)
        except BreakError as error:
            raise ControlError(str(error)) from error
        for one in changed:
            self._tell(one)

    def _tell(self, node: Node) -> None:
        """A sandbox's tools read health from a file; their clock is the machine's, not ours."""
        if node.host is not None:
            node.host.tell(node.health.to_json(behind=self._born))

    async def _mend(self, node: Node, arguments: Mapping[str, Any]) -> None:
        kind = arguments["kind"]
        if not kind or kind in AILMENTS:
            for one in heal(node, kind, self._nodes):
                self._tell(one)
        if kind in AILMENTS:
            return
        node.breaks.remove(kind)
        if not node.breaks.has("hold"):
            node.let_go()
        self._settle(node)

    async def _release(self, node: Node, _: Mapping[str, Any]) -> int:
        node.breaks.remove("hold")
        return node.let_go()

    async def _sessions(self, node: Node, _: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [asdict(entry) for entry in node.lines]

    async def close(self) -> None:
        """Cut everything and take the sandboxes away."""
        for node in self._nodes.values():
            self._leave(node)
        for door in self._doors:
            door.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.sleep(0)
        hosts = [node.host for node in self._nodes.values() if node.host is not None]
        with ThreadPoolExecutor(4) as pool:
            for stopping in [pool.submit(self._stop_host, host) for host in hosts]:
                with suppress(OSError, RuntimeError):
                    stopping.result()
        if self._ibsim is not None:
            self._ibsim.stop()

    def _stop_host(self, host: Host) -> None:
        """Take a sandbox away, and its files unless they are to be kept."""
        host.stop()
        if not self._kept:
            host.erase()


def make_host(plan: LabNode, folder: Path) -> Host:
    """A sandbox for a host, not yet started; its files go below the folder."""
    # Imported by name: only labs with hosts need it, and it works with Linux alone.
    made: Host = importlib.import_module("rdma_fabric.lab.hosts").Host(plan.facts, folder, plan.host)
    return made


def _known_host(node: Node) -> str:
    """The node's line of known_hosts."""
    public = node.key.export_public_key("openssh").decode().split()
    return f"[{node.endpoint.host}]:{node.endpoint.port} {public[0]} {public[1]}\n"


def _write(path: Path, data: bytes) -> None:
    """Write a file that only the owner can read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def _lock(state: Path) -> int:
    """Hold the state folder for the life of the process; LabError when another server does."""
    handle = os.open(state / fabric.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(20):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:  # a client that looks whether we live holds it for an instant
            time.sleep(0.05)
    else:
        raise LabError(f"another lab is up in {state}")
    os.ftruncate(handle, 0)
    os.write(handle, str(os.getpid()).encode())
    return handle


async def _serve(lab: Lab, state: Path, ready: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lab.stop, False)
    try:
        await lab.start()
        listener = await control.serve(state, lab.control)
        ready()
        await lab.stopped.wait()
        listener.close()
    finally:
        await lab.close()
        (state / control.SOCKET).unlink(missing_ok=True)


def main() -> None:
    """Read the request, detach, say that the lab is ready, serve."""
    request = json.loads(sys.stdin.buffer.read())
    if os.fork():
        os._exit(0)
    os.setsid()
    state = Path(request["state"])
    answer = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # asyncssh logs commands at INFO; a log must not hold what was typed.
    logging.getLogger("asyncssh").setLevel(logging.WARNING)

    def say(**words: object) -> None:
        answer.write(json.dumps(words).encode() + b"\n")
        answer.close()

    try:
        _lock(state)
        plans = [LabNode.from_json(node) for node in request["nodes"]]
        lab = Lab(state, plans, request["password"], request["keep"])
        asyncio.run(_serve(lab, state, lambda: say(ready=True)))
    except (LabError, OSError) as error:
        _LOG.error("the lab stops: %s", error)
        if not answer.closed:
            say(ready=False, error=str(error))


if __name__ == "__main__":
    main()
