"""Which hosts test the paths between them: work per leaf and pair of leaves, never all pairs of hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rdma_fabric.checker.scopes import PortView
from rdma_fabric.findings import Place
from rdma_fabric.health.types import Gaps, Scene
from rdma_fabric.inventory.types import End

MOST: Final = 2_000
"""Pairs of leaves of one rail up to which each is tested; beyond, each leaf with its next ones."""
NEXT: Final = 8


@dataclass(frozen=True, slots=True)
class Path:
    """From one host port to another one of the same rail, and the leaves that they are cabled to."""

    a: End
    b: End
    leaves: tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Port:
    end: End
    leaf: str


def choose(scene: Scene, gaps: Gaps) -> tuple[Path, ...]:
    """On every leaf a ring through its hosts, so that each port is tested; between two leaves one pair."""
    found: list[Path] = []
    for ports in _rails(scene, gaps).values():
        by_leaf: dict[str, list[_Port]] = {}
        for port in ports:
            by_leaf.setdefault(port.leaf, []).append(port)
        made = [*_rings(by_leaf.values()), *_between(list(by_leaf.values()))]
        if not made:
            gaps.add("path", "no other host of its rail was read", *(_place(one.end) for one in ports))
        found += made
    return tuple(found)


def _place(end: End) -> Place:
    return Place(end.node, end.port)


def _rails(scene: Scene, gaps: Gaps) -> Mapping[tuple[str, str], list[_Port]]:
    """(network, rail) -> host ports with an address, in the inventory's order."""
    found: dict[tuple[str, str], list[_Port]] = {}
    for name in scene.names:
        if name not in scene.observations:
            continue
        for port, view in scene.judged.ports[name].items():
            if not view.is_host or view.wishes.rdma.transport != "rocev2" or view.hw.kind == "vf":
                continue
            end = End(name, port)
            if addresses(scene, end):
                key = (view.network, view.hw.rail)
                found.setdefault(key, []).append(_Port(end, _leaf(scene, end, view)))
            elif view.hw.kind == "physical" and not _in_bond(scene, end):
                gaps.add("path", "the port has no address of its own", _place(end))
    return found


def _in_bond(scene: Scene, end: End) -> bool:
    return any(end.port in view.hw.members for view in scene.judged.ports[end.node].values())


def addresses(scene: Scene, end: End) -> tuple[str, ...]:
    """Up to one of each IP version: the first that the port has."""
    sign = scene.first.get(end.node)
    own = [address for port, address in sign.vitals.addresses if port == end.port] if sign else []
    first = {":" in address: address for address in reversed(own)}
    return tuple(first[six] for six in (False, True) if six in first)


def _leaf(scene: Scene, end: End, view: PortView) -> str:
    """The switch at the other end of the port's cable, or of those of the ports below it."""
    below = view.hw.members or ((view.hw.parent,) if view.hw.parent else (end.port,))
    for port in below:
        if found := scene.cables.get(End(end.node, port)):
            return found[0].node
    return ""


def _rings(leaves: Iterable[list[_Port]]) -> Iterator[Path]:
    """Answers are as large as questions, so that two ports need one test."""
    for ports in leaves:
        last = len(ports) if len(ports) > 2 else len(ports) - 1
        for number in range(last):
            a, b = ports[number], ports[(number + 1) % len(ports)]
            yield Path(a.end, b.end, (a.leaf, b.leaf))


def _between(leaves: list[list[_Port]]) -> Iterator[Path]:
    """One pair for two leaves, hosts in turn."""
    count = len(leaves)
    every = count * (count - 1) // 2 <= MOST
    for one in range(count):
        others = range(one + 1, count) if every else ((one + step) % count for step in range(1, NEXT + 1))
        for other in others:
            a = leaves[one][other % len(leaves[one])]
            b = leaves[other][one % len(leaves[other])]
            yield Path(a.end, b.end, (a.leaf, b.leaf))
