"""What ails a port until it is mended: counters that grow, a slow link, a small RDMA MTU, a black hole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdma_fabric.lab.breaks import BreakError
from rdma_fabric.lab.hosttools.health import COUNTERS, PER_PORT, PER_PRIORITY, Health

if TYPE_CHECKING:
    from rdma_fabric.lab.channels import Node

AILMENTS = {
    "counter": "PORT NAME=RATE",
    "speed": "PORT SPEED",
    "active-mtu": "PORT BYTES",
    "blackhole": "PORT BYTES",
}
"""Kind of an ailment -> its words."""
NAMES = (*(f"{name}:P" for name in PER_PRIORITY), *PER_PORT)
"""Counters as users write them; P is a priority."""
OF_INFINIBAND = {"symbol": "SymbolErrorCounter", "crc": "PortRcvErrors", "tx-discard": "PortXmitDiscards"}
"""Counter -> field of PortCounters (InfiniBand specification 16.1.3.5) of a port on ibsim."""
RDMA_MTUS = (256, 512, 1024, 2048, 4096)
_RDMA_NICS = ("mlx5", "bnxt", "irdma")


@dataclass(frozen=True, slots=True)
class Ailment:
    """One ailment. `value`: per second (counter), Gbit/s (speed), bytes (others).

    counter      from now on a counter of the port grows, `value` per second
    speed        the link came up slower than planned; both of its ends show it
    active-mtu   the RDMA device of a host's port has a smaller MTU than its netdev gives
    blackhole    IP packets above this size are lost at a switch's port, both ways, without an answer
    """

    kind: str
    port: str
    name: str = ""
    value: float = 0.0

    @classmethod
    def of(cls, kind: str, words: Sequence[str]) -> Ailment:
        """From the words of a command; BreakError says what is wrong with them."""
        if len(words) != 2 or (kind == "counter" and not words[1].partition("=")[2]):
            raise BreakError(f"write {kind} {AILMENTS[kind]}")
        port, text = words
        if kind == "counter":
            return cls._counter(port, text)
        digits = text.upper().removesuffix("G") if kind == "speed" else text
        if not re.fullmatch(r"[1-9]\d{0,4}", digits):
            unit = "a speed such as 100G" if kind == "speed" else "a number of bytes"
            raise BreakError(f"'{text}' is not {unit}")
        if kind == "active-mtu" and int(digits) not in RDMA_MTUS:
            raise BreakError(f"{digits} is no RDMA MTU: use one of {', '.join(map(str, RDMA_MTUS))}")
        return cls(kind, port, "", float(digits))

    @classmethod
    def _counter(cls, port: str, text: str) -> Ailment:
        name, _, rate = text.partition("=")
        if name not in COUNTERS:
            raise BreakError(f"there is no counter '{name}': use one of {', '.join(NAMES)} (P: 0 to 7)")
        if not re.fullmatch(r"\d{1,12}(\.\d{1,6})?", rate):
            raise BreakError(f"'{rate}' is not a rate per second")
        return cls("counter", port, name, float(rate))


def afflict(node: Node, ailment: Ailment, nodes: Mapping[str, Node]) -> tuple[Node, ...]:
    """Put an ailment in force; returns the nodes whose health changed, BreakError says why it cannot be."""
    known = ports(node)
    if ailment.port not in known:
        raise BreakError(f"{node.name} has no port {ailment.port}: use one of {', '.join(known) or '(none)'}")
    health, port, value = node.health, ailment.port, ailment.value
    over_ib = port in node.plan.host.get("ib", {})
    if over_ib and ailment.kind != "counter":
        raise BreakError(f"{port} of {node.name} is an InfiniBand port, whose links ibsim does not change")
    if ailment.kind == "counter":
        if over_ib and ailment.name not in OF_INFINIBAND:
            raise BreakError(f"InfiniBand ports of the lab count {', '.join(OF_INFINIBAND)} only")
        health.grow(port, ailment.name, value)
    elif ailment.kind == "active-mtu":
        if _nic(node, port) not in _RDMA_NICS:
            raise BreakError(f"{port} of {node.name} has no RDMA device with an MTU of its own")
        health.active_mtus[port] = int(value)
    elif ailment.kind == "blackhole":
        if node.plan.kind == "host":
            raise BreakError(f"{node.name} is a host: black holes are at ports of switches")
        health.blackholes[port] = int(value)
    else:
        return _slow(node, port, int(value), nodes)
    return (node,)


def _slow(node: Node, port: str, gbps: int, nodes: Mapping[str, Node]) -> tuple[Node, ...]:
    ends = tuple(_ends(node, port, nodes))
    planned = min((speed for *_, speed in ends if speed), default=0)
    if planned and gbps > planned:
        raise BreakError(f"the link is planned with {planned}G: it cannot come up with {gbps}G")
    for end, name, _ in ends:
        end.health.speeds[name] = gbps
    return tuple(end for end, *_ in ends)


def _ends(node: Node, port: str, nodes: Mapping[str, Node]) -> Iterator[tuple[Node, str, int]]:
    """Both ends of a port's cable: node, port, planned Gbit/s; the far one only where the lab plays it."""
    fact = next((fact for fact in node.plan.facts.ports if fact.name == port), None)
    yield node, port, fact.speed_gbps if fact else 0
    if fact is not None and fact.peer_node in nodes:
        peer = nodes[fact.peer_node]
        far = next((one for one in peer.plan.facts.ports if one.name == fact.peer_port), None)
        if far is not None:
            yield peer, far.name, far.speed_gbps


def ports(node: Node) -> tuple[str, ...]:
    """Names of the node's ports, virtual functions of a host among them."""
    named = [fact.name for fact in node.plan.facts.ports]
    return tuple(dict.fromkeys([*named, *node.plan.host.get("ports", {})]))


def _nic(node: Node, port: str) -> str:
    if node.plan.kind != "host":
        return ""
    return str(node.plan.host.get("ports", {}).get(port, {}).get("nic", "mlx5"))


def heal(node: Node, kind: str, nodes: Mapping[str, Node]) -> tuple[Node, ...]:
    """End the ailments of a kind, or all; counters stay as they are. Returns the nodes that changed."""
    changed = [node]
    if kind in ("", "counter"):
        node.health.settle()
    if kind in ("", "active-mtu"):
        node.health.active_mtus.clear()
    if kind in ("", "blackhole"):
        node.health.blackholes.clear()
    if kind in ("", "speed"):
        for port in tuple(node.health.speeds):
            for end, name, _ in _ends(node, port, nodes):
                end.health.speeds.pop(name, None)
                changed.append(end)
    return tuple({one.name: one for one in changed}.values())


def shown(health: Health) -> tuple[str, ...]:
    """The ailments in force, as their words."""
    found = [
        f"counter {port} {name}={rate:g}"
        for port, counters in health.rates.items()
        for name, (_, rate, _) in counters.items()
        if rate
    ]
    found += [f"speed {port} {gbps}G" for port, gbps in health.speeds.items()]
    found += [f"active-mtu {port} {size}" for port, size in health.active_mtus.items()]
    return (*found, *(f"blackhole {port} {size}" for port, size in health.blackholes.items()))
