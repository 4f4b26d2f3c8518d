"""Two switches that act as one for their hosts: pairs of the option `mlag`, and those below one bond."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise
from typing import Final

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.graphs import Cable, Graph

OPTION: Final = "mlag"


def domains(judged: Judged) -> dict[str, list[str]]:
    """Value of the option `mlag` -> nodes that have it."""
    found: dict[str, list[str]] = {}
    for name, node in judged.views.items():
        if node.hw.option(OPTION):
            found.setdefault(node.hw.option(OPTION), []).append(name)
    return found


def host_pairs(judged: Judged, graphs: Iterable[Graph]) -> Iterator[tuple[Cable, Cable]]:
    """Two cables of one host that are one to it, on two switches."""
    for graph in graphs:
        hosts: dict[tuple[str, str], list[Cable]] = {}
        for cable in graph.edge:
            bond = _bond(judged, cable)
            pair = judged.views[cable.above.node].hw.option(OPTION)
            if bond or pair:
                hosts.setdefault((cable.below.node, bond or pair), []).append(cable)
        for cables in hosts.values():
            for one, other in pairwise(cables):
                if one.above.node != other.above.node:
                    yield one, other


def switch_pairs(judged: Judged, graph: Graph) -> set[frozenset[str]]:
    """Switches that are a pair in the network of `graph`."""
    found = {frozenset((one.above.node, other.above.node)) for one, other in host_pairs(judged, (graph,))}
    for names in domains(judged).values():
        found.update(map(frozenset, combinations(names, 2)))
    return found


def _bond(judged: Judged, cable: Cable) -> str:
    ports = judged.inventory.nodes[cable.below.node].spec.ports.values()
    return next((port.name for port in ports if cable.below.port in port.members), "")
