"""The cables of one network as a graph: hosts on switches, switches among themselves, tiers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rdma_fabric.inventory.types import End, Link

if TYPE_CHECKING:
    from rdma_fabric.checker.fabric import Judged


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable of a network. Below is a host where one is at an end, else `link.a`; `gbps` 0: not known."""

    below: End
    above: End
    gbps: int
    link: Link


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Cables of one network whose both ends are in it."""

    edge: tuple[Cable, ...]
    """From hosts to switches."""
    trunk: tuple[Cable, ...]
    """Between switches."""
    tiers: Mapping[str, int] = field(default_factory=dict)
    """Switch -> 1 with hosts below, 2 next to those, and so on; switches that reach no host are left out."""

    def neighbours(self) -> dict[str, set[str]]:
        """Switch -> switches that it is cabled to."""
        found: dict[str, set[str]] = {}
        for cable in self.trunk:
            found.setdefault(cable.below.node, set()).add(cable.above.node)
            found.setdefault(cable.above.node, set()).add(cable.below.node)
        return found


def graphs(judged: Judged) -> dict[str, Graph]:
    """Network -> its graph."""
    edge: dict[str, list[Cable]] = {}
    trunk: dict[str, list[Cable]] = {}
    for link in judged.links():
        a = judged.ports.get(link.a.node, {}).get(link.a.port)
        b = judged.ports.get(link.b.node, {}).get(link.b.port)
        if a is None or b is None or a.network != b.network or (a.is_host and b.is_host):
            continue
        below, above = (link.b, link.a) if b.is_host else (link.a, link.b)
        speeds = [speed for speed in (a.hw.speed_gbps, b.hw.speed_gbps) if speed]
        cable = Cable(below, above, min(speeds, default=0), link)
        (edge if a.is_host or b.is_host else trunk).setdefault(a.network, []).append(cable)
    names = dict.fromkeys((*edge, *trunk))
    return {name: _graph(edge.get(name, []), trunk.get(name, [])) for name in names}


def _graph(edge: list[Cable], trunk: list[Cable]) -> Graph:
    graph = Graph(tuple(edge), tuple(trunk))
    return Graph(graph.edge, graph.trunk, _tiers({one.above.node for one in edge}, graph.neighbours()))


def _tiers(first: Iterable[str], neighbours: Mapping[str, Iterable[str]]) -> dict[str, int]:
    found = dict.fromkeys(first, 1)
    row = list(found)
    while row:
        nexts = []
        for node in row:
            for other in neighbours.get(node, ()):
                if other not in found:
                    found[other] = found[node] + 1
                    nexts.append(other)
        row = nexts
    return found
