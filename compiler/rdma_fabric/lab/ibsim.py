"""The InfiniBand part of a lab: one real `ibsim` (Debian: ibsim-utils) with the cables of the plan.

ibsim plays the hardware of adapters and switches; OpenSM and the diagnostic tools on the lab's hosts are
the real ones and speak to it (`hosttools.ib`). It cannot have a port MTU above 2048.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from rdma_fabric.lab.fabric import LabError, LabNode

NODE_LIMIT: Final = 64
"""Characters of a node's name in ibsim (NODEIDLEN)."""
_START_SECONDS: Final = 10.0
_SPEEDS: Final = ((200, 7), (100, 3), (56, 1))
"""Gbit/s of four lanes -> extended speeds that a port may have (1 FDR, 2 EDR, 4 HDR; ibsim 0.10)."""


def has_infiniband(nodes: Iterable[LabNode]) -> bool:
    """True when a node has InfiniBand ports."""
    return any(node.host.get("ib") for node in nodes)


def adapter(node: str, netdev: str, ibdev: str) -> str:
    """The name of a host's adapter in ibsim, which is also its node description."""
    return f"{node} {ibdev or netdev}"


@dataclass(frozen=True, slots=True)
class _Port:
    number: int
    peer: str
    peer_port: int
    gbps: int


def topology(nodes: Iterable[LabNode]) -> str:
    """The net file of ibsim: every InfiniBand switch and adapter with its cables."""
    nodes = tuple(nodes)
    where = dict(_places(nodes))
    records = []
    for node in nodes:
        plan: Mapping[str, Any] = node.host.get("ib", {})
        cables = {port.name: port for port in node.facts.ports}
        if node.kind == "switch":
            ports = [_port(cables[name], where, number) for name, number in plan.items()]
            if ports:
                width = max(one.number for one in ports)
                records.append(_record("Switch", node.facts.name, width, ports, _made_guid(node.facts.name)))
            continue
        for name, one in plan.items():
            # The GUID of port 1 is that of the node and one more.
            guid = int(one["guid"], 16) - 1
            ports = [_port(cables[name], where, 1)]
            records.append(_record("Hca", where[node.facts.name, name][0], 1, ports, guid))
    return "\n".join(records)


def _places(nodes: Iterable[LabNode]) -> Iterator[tuple[tuple[str, str], tuple[str, int]]]:
    """(node, port) -> name and port number in ibsim."""
    for node in nodes:
        for name, one in node.host.get("ib", {}).items():
            if node.kind == "switch":
                yield (node.facts.name, name), (node.facts.name, one)
            else:
                yield (node.facts.name, name), (adapter(node.facts.name, name, one.get("ibdev", "")), 1)


def place(node: LabNode, port: str) -> tuple[str, int]:
    """Name and port number in ibsim of an InfiniBand port; KeyError for others."""
    return {name: where for (_, name), where in _places((node,))}[port]


def _port(port: Any, where: Mapping[tuple[str, str], tuple[str, int]], number: int) -> _Port:
    peer, peer_port = where.get((port.peer_node, port.peer_port), ("", 0))
    return _Port(number, peer, peer_port, port.speed_gbps)


def _made_guid(name: str) -> int:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return int(f"0002c9{digest[:9]}0", 16)


def _record(kind: str, name: str, width: int, ports: Iterable[_Port], guid: int) -> str:
    word = "switchguid" if kind == "Switch" else "caguid"
    rows = [f"{word}=0x{guid:016x}", f'{kind}\t{width} "{name}"']
    for one in sorted(ports, key=lambda port: port.number):
        if one.peer:
            speed = next((code for gbps, code in _SPEEDS if one.gbps >= gbps), 0)
            rows.append(f'[{one.number}]\t"{one.peer}"[{one.peer_port}] w=3 s=7 e={speed}')
    return "\n".join(rows) + "\n"


@dataclass
class Ibsim:
    """A running ibsim. `socket` is the name under which tools on hosts find it."""

    folder: Path
    socket: str = field(default_factory=lambda: f"fabric-lab-{os.getpid()}-{time.monotonic_ns()}")
    _process: subprocess.Popen[bytes] | None = None

    def start(self, nodes: Iterable[LabNode]) -> None:
        """Start it and wait until it is ready; LabError says why it cannot be."""
        program = shutil.which("ibsim", path=f"{os.environ.get('PATH', os.defpath)}:/usr/bin:/usr/sbin")
        if program is None:
            raise LabError("ibsim is not installed (Debian: ibsim-utils, opensm, infiniband-diags)")
        self.folder.mkdir(mode=0o700, exist_ok=True)
        net = self.folder / "net"
        net.write_text(topology(nodes), encoding="utf-8")
        log = self.folder / "log"
        environment = {"PATH": os.environ.get("PATH", os.defpath), "IBSIM_SOCKNAME": self.socket}
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [program, "-s", str(net)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env=environment,
                start_new_session=True,
            )
        end = time.monotonic() + _START_SECONDS
        while b"Network simulator ready" not in log.read_bytes():
            if self._process.poll() is not None or time.monotonic() > end:
                said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                self.stop()
                raise LabError(f"ibsim does not start: {said[-1] if said else 'no output'}")
            time.sleep(0.02)

    def command(self, line: str) -> None:
        """One line of ibsim's console, such as `Unlink "leaf1"[3]`."""
        if not re.fullmatch(r'(Unlink|Link|ReLink) "[^"\n]{1,64}"\[\d+\]( "[^"\n]{1,64}"\[\d+\])?', line):
            raise LabError(f'ibsim has no command {line!r}: Unlink, Link or ReLink "NODE"[PORT]')
        stdin: IO[bytes] | None = self._process.stdin if self._process else None
        if stdin is None:
            raise LabError("the lab has no InfiniBand")
        stdin.write(f"{line}\n".encode())
        stdin.flush()

    def count(self, node: str, port: int, field_name: str, value: int) -> None:
        """Set a counter of PortCounters, whose error counters end at 65,535 and stay there."""
        stdin: IO[bytes] | None = self._process.stdin if self._process else None
        if stdin is not None:
            line = f'PerformanceSet "{node}"[{port}] PortCounters.{field_name}={min(value, 0xFFFF)}'
            stdin.write(f"{line}\n".encode())
            stdin.flush()

    def stop(self) -> None:
        """End it; tools that still speak to it lose their device."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.terminate()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdin.close()
