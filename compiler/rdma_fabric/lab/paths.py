"""How a packet goes through the lab's cables, and what becomes of one that is too large.

The way is one of the shortest over links that are up; which one depends on the two addresses alone, as with a
real hash, so that a pair of ports always takes the same.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rdma_fabric.lab.fabric import LabNode
from rdma_fabric.lab.simulators._contract import Passage

Port = tuple[str, str]
"""(node, port)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One cable on the way: out of a port, into the port at its other end."""

    out: Port
    into: Port


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a packet. `mtu` > 0: `answerer` (an address, or nothing) says how large it may be."""

    arrived: bool
    mtu: int = 0
    answerer: str = ""
    routed: int = 0
    """How many routers it passed, each of which took one from its time to live."""


def cables(nodes: Iterable[LabNode]) -> Mapping[Port, Port]:
    """Every cabled port -> the port at the other end."""
    found = {}
    for node in nodes:
        for port in node.facts.ports:
            if port.peer_node:
                found[node.facts.name, port.name] = (port.peer_node, port.peer_port)
    return found


def way(
    start: Port,
    target: Port,
    cabled: Mapping[Port, Port],
    transit: frozenset[str],
    up: Callable[[Port], bool],
    key: str,
) -> tuple[Step, ...]:
    """The cables from one port to another; none where there is no way. `transit`: nodes that forward."""
    first, last = cabled.get(start), cabled.get(target)
    if first is None or last is None or not all(up(port) for port in (start, first, last, target)):
        return ()
    if first == target:
        return (Step(start, target),)
    if first[0] not in transit or last[0] not in transit:
        return ()
    beside = _neighbours(cabled, transit, up)
    distance = _distances(last[0], beside)
    if first[0] not in distance:
        return ()
    steps, here = [Step(start, first)], first[0]
    while here != last[0]:
        closer = sorted(
            step for step in _steps(here, beside) if distance.get(step[1][0]) == distance[here] - 1
        )
        out, into = closer[zlib.crc32(f"{key} {here}".encode()) % len(closer)]
        steps.append(Step(out, into))
        here = into[0]
    return (*steps, Step(last, target))


def _neighbours(
    cabled: Mapping[Port, Port], transit: frozenset[str], up: Callable[[Port], bool]
) -> Mapping[str, list[tuple[Port, Port]]]:
    """Node that forwards -> its cables to others that do, both ends up."""
    found: dict[str, list[tuple[Port, Port]]] = {}
    for out, into in cabled.items():
        if out[0] in transit and into[0] in transit and up(out) and up(into):
            found.setdefault(out[0], []).append((out, into))
    return found


def _steps(node: str, beside: Mapping[str, list[tuple[Port, Port]]]) -> list[tuple[Port, Port]]:
    return beside.get(node, [])


def _distances(target: str, beside: Mapping[str, list[tuple[Port, Port]]]) -> Mapping[str, int]:
    """Node -> how many cables it is from the target."""
    distance = {target: 0}
    waiting = deque([target])
    while waiting:
        here = waiting.popleft()
        for _, (node, _) in _steps(here, beside):
            if node not in distance:
                distance[node] = distance[here] + 1
                waiting.append(node)
    return distance


def carry(steps: Iterable[Step], size: int, passage: Callable[[Port], Passage], fragile: bool = True) -> Fate:
    """Send an IP packet of `size` bytes along the way; `fragile`: it must not be fragmented.

    A layer-3 port whose MTU is smaller answers (or fragments), a layer-2 port, the MAC of a port that takes
    less, and a black hole lose it without a word. The sender's own MTU is the sender's business.
    """
    routed, entry = 0, ""
    for number, step in enumerate(steps):
        out, into = passage(step.out), passage(step.into)
        if not (out.up and into.up):
            return Fate(False)
        if number:
            if out.sends and size > out.sends:
                if not out.answers:
                    return Fate(False)
                if fragile:
                    return Fate(False, out.sends, entry, routed)
            routed += out.answers
        if any(hole and size > hole for hole in (out.hole, into.hole)) or (into.takes and size > into.takes):
            return Fate(False)
        entry = into.address
    return Fate(True, routed=routed)


def back(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The same way in the other direction."""
    return tuple(Step(step.into, step.out) for step in reversed(tuple(steps)))
