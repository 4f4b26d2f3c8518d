"""The lab's side of `hosttools.asking`: what tools in sandboxes want to know of the fabric around them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdma_fabric.lab import paths
from rdma_fabric.lab.control import address_of
from rdma_fabric.lab.hosttools.store import LAB
from rdma_fabric.lab.processes import output
from rdma_fabric.lab.simulators._contract import Passage

if TYPE_CHECKING:
    from rdma_fabric.lab.channels import Node
    from rdma_fabric.lab.fabric import LabNode

Answer = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
_NOWHERE = {4: "192.0.0.8", 6: "fe80::1"}
"""Who answers where a router's port has no address (RFC 7600: 192.0.0.8)."""


_RDMA_HEADERS, _FRAME = 20 + 8 + 12 + 16 + 4, 14 + 4 + 20
"""Bytes around a payload: IPv4, UDP, BTH, RETH and ICRC; Ethernet with its gap and preamble."""
_PAUSE_SECONDS, _PAUSED_MOST = 5e-6, 0.95


async def listen(root: Path, answer: Answer) -> asyncio.Server | None:
    """Listen in a sandbox's tree; None where there is no such tree."""
    path = root / LAB.lstrip("/")
    if not path.parent.is_dir():
        return None

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found: Mapping[str, Any] = {}
        try:
            line = await reader.readline()
            found = await _while_there(reader, answer(json.loads(line))) if line else {}
        finally:
            with contextlib.suppress(ConnectionError):
                writer.write(json.dumps(found).encode() + b"\n")
                writer.close()

    path.unlink(missing_ok=True)
    with address_of(path) as address:
        server = await asyncio.start_unix_server(converse, address)
    path.chmod(0o666)  # the sandbox's root is another user than ours where we are root
    return server


async def _while_there(
    reader: asyncio.StreamReader, answering: Awaitable[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The answer; nothing once the asking tool is gone."""
    work = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(reader.read())
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else {}
    finally:
        work.cancel()
        gone.cancel()


class Fabric:
    """All nodes as packets see them: `plans` those of the inventory, `nodes` those that the lab plays."""

    def __init__(self, plans: list[LabNode], nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._waiting: dict[tuple[str, str, int], tuple[asyncio.Future[Mapping[str, Any]], Any]] = {}
        self._speeds = {
            (plan.facts.name, port.name): port.speed_gbps for plan in plans for port in plan.facts.ports
        }
        self._cables = paths.cables(plans)
        self._switches = frozenset(plan.facts.name for plan in plans if plan.kind == "switch")
        self._planned = {
            address.partition("/")[0]: (plan.facts.name, port)
            for plan in plans
            for port, fields in plan.host.get("ports", {}).items()
            for address in (fields.get("address", ""), fields.get("address6", ""))
            if address
        }

    def passage(self, port: paths.Port) -> Passage:
        """What a port lets through now."""
        node = self._nodes.get(port[0])
        if node is None:
            return Passage()
        if node.host is not None:
            return _host_passage(node, port[1])
        found = node.simulator().passage(port[1])
        hole = node.health.blackholes.get(port[1], 0)
        return Passage(found.up, found.takes, found.sends, found.answers, found.address, hole)

    def _up(self, port: paths.Port) -> bool:
        """A device that nobody has asked for anything yet is as it left the factory: up."""
        node = self._nodes.get(port[0])
        return node is None or (node.host is None and node.device is None) or self.passage(port).up

    async def packet(self, sender: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Fate of a packet that a host sends out of a port, and of its answer: fields of `paths.Fate`."""
        size, version = int(request["size"]), int(request["version"])
        start = (sender, str(request["port"]))
        target = await self.owner(str(request["to"]))
        steps = self.way(start, target) if target else ()
        if not steps:
            return {}
        fate = paths.carry(steps, size, self.passage, bool(request["fragile"]))
        if fate.arrived and not paths.carry(paths.back(steps), size, self.passage, fragile=False).arrived:
            return {}
        answerer = fate.answerer if ("." in fate.answerer) == (version == 4) else ""
        return {
            "arrived": fate.arrived,
            "mtu": fate.mtu,
            "answerer": answerer or _NOWHERE[version],
            "routed": fate.routed,
        }

    async def serve(self, host: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """A perftest server waits for its client; the last one that listens on a TCP port has it."""
        made: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        key = (host, str(request["tool"]), int(request["tcp"]))
        self._waiting[key] = (made, request["end"])
        try:
            return await made
        finally:
            if self._waiting.get(key, (None,))[0] is made:
                del self._waiting[key]

    async def connect(self, host: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The client's end: who waits at the address, and what the way between the two ports gives."""
        target = await self.owner(str(request["to"]))
        waiting = (
            self._waiting.pop((target[0], str(request["tool"]), int(request["tcp"])), None)
            if target
            else None
        )
        if target is None or waiting is None:
            return {}
        served, far = waiting
        near: Mapping[str, Any] = request["end"]
        gbps = self._rate(
            (host, str(near["port"])), (target[0], str(far["port"])), min(near["mtu"], far["mtu"])
        )
        if not served.done():
            served.set_result({"gbps": gbps, "end": near})
        return {"gbps": gbps, "end": far}

    def _rate(self, start: paths.Port, target: paths.Port, mtu: int) -> float:
        """Gbit/s of payload: that of the slowest link, less headers and pauses; 0 = nothing arrives."""
        steps = self.way(start, target)
        packet = mtu + _RDMA_HEADERS
        for one in (steps, paths.back(steps)):
            if not steps or not paths.carry(one, packet, self.passage).arrived:
                return 0.0
        ends = [port for step in steps for port in (step.out, step.into)]
        slowest = min(self._gbps(port) for port in ends)
        paused = max(self._paused(port) for port in ends)
        return slowest * mtu / (packet + _FRAME) * (1 - paused)

    def _gbps(self, port: paths.Port) -> int:
        planned = self._speeds.get(port) or 400
        node = self._nodes.get(port[0])
        return node.health.gbps(port[1], planned) if node is not None else planned

    def _paused(self, port: paths.Port) -> float:
        """Part of the time that PFC stops a port: each frame that it gets for 5 microseconds, 95% at most."""
        node = self._nodes.get(port[0])
        if node is None:
            return 0.0
        frames = sum(node.health.rate(port[1], f"pfc-rx:{priority}") for priority in range(8))
        return min(_PAUSED_MOST, frames * _PAUSE_SECONDS)

    def way(self, start: paths.Port, target: paths.Port) -> tuple[paths.Step, ...]:
        """The cables between two ports of hosts."""
        return paths.way(start, target, self._cables, self._switches, self._up, f"{start} {target}")

    async def owner(self, address: str) -> paths.Port | None:
        """The port that has the address now: the planned one, else whoever was given it."""
        planned = self._planned.get(address)
        first = [planned[0]] if planned else []
        others = [name for name, node in self._nodes.items() if node.host is not None and name not in first]
        for name in [*first, *others]:
            node = self._nodes.get(name)
            if node is not None and node.host is not None:
                port = _having(await output(node.host.argv("ip -j addr show")), address)
                if port:
                    return (name, port)
        return None


def _having(text: str, address: str) -> str:
    """The netdev that has the address, in the output of `ip -j addr`."""
    try:
        links = json.loads(text)
    except ValueError:
        return ""
    for link in links:
        if any(info.get("local") == address for info in link.get("addr_info", ())) and "UP" in link["flags"]:
            return str(link["ifname"])
    return ""


def _host_passage(node: Node, port: str) -> Passage:
    """A host's port: what is above its MTU is too large for its receiver."""
    assert node.host is not None
    folder = f"/sys/devices/virtual/net/{port}"
    try:
        up = node.host.files(f"{folder}/carrier").strip() == b"1"
        mtu = int(node.host.files(f"{folder}/mtu"))
    except (OSError, ValueError):  # away, or administratively down
        return Passage(up=False)
    return Passage(up, mtu, mtu)
