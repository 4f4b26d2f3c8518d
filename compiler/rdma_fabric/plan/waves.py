"""The order of a push: growing from the core to the hosts, shrinking the other way, redundancy kept.

Growing means more fits or is protected afterwards (larger MTU, PFC on one more priority): no hop may
send what the next one cannot take, so the core grows first and the hosts last. Shrinking is the reverse.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from rdma_fabric.inventory.types import Inventory
from rdma_fabric.state import Difference

Direction = Literal["grow", "shrink", "mixed", "neutral"]


def direction(differences: Iterable[Difference]) -> Direction:
    """Which way these differences go."""
    ways = {way for one in differences if (way := _way(one)) != "neutral"}
    if len(ways) == 2:
        return "mixed"
    return next(iter(ways), "neutral")


def _way(one: Difference) -> Direction:
    if one.path.endswith(".mtu.ip") and isinstance(one.wanted, int) and isinstance(one.found, int):
        return "grow" if one.wanted > one.found else "shrink"
    if (
        one.path.endswith((".pfc_tx", ".pfc_rx"))
        and isinstance(one.wanted, bool)
        and isinstance(one.found, bool)
    ):
        return "grow" if one.wanted else "shrink"
    return "neutral"


def tiers(inventory: Inventory) -> dict[str, int]:
    """Cables between a node and the nearest host: hosts 0, leaves 1, spines 2 ...; 99 without a way."""
    near: dict[str, set[str]] = {}
    for link in inventory.links:
        near.setdefault(link.a.node, set()).add(link.b.node)
        near.setdefault(link.b.node, set()).add(link.a.node)
    found = {name: 0 for name, node in inventory.nodes.items() if node.is_host}
    queue = deque(found)
    while queue:
        name = queue.popleft()
        for other in near.get(name, ()):
            if other not in found:
                found[other] = found[name] + 1
                queue.append(other)
    return {name: found.get(name, 99) for name in inventory.nodes}


def arrange(
    ways: Mapping[str, Direction],
    inventory: Inventory,
    disturbing: Mapping[str, frozenset[str]],
    turns: Mapping[str, tuple[str, int]] | None = None,
) -> tuple[tuple[str, ...], ...]:
    """Waves of node names. `disturbing`: nodes whose change is felt by working nodes, and by which.
    `turns`: nodes that take turns within a group, each in a wave of its own at the end.

    Two nodes whose changes are felt by the same working node never share a wave: a host with two leaves,
    or a leaf with two spines, keeps one of them untouched at any time.
    """
    level = tiers(inventory)
    waiting = {name: turn for name, turn in (turns or {}).items() if name in ways}
    alone = sorted(waiting, key=lambda name: waiting[name][1])
    ways = {name: way for name, way in ways.items() if name not in waiting}
    growing = [name for name, way in ways.items() if way != "shrink"]
    shrinking = [name for name, way in ways.items() if way == "shrink"]
    waves: list[tuple[str, ...]] = []
    for names, core_first in ((growing, True), (shrinking, False)):
        by_tier: dict[int, list[str]] = {}
        for name in names:
            by_tier.setdefault(level[name], []).append(name)
        for tier in sorted(by_tier, reverse=core_first):
            waves.extend(_split(by_tier[tier], disturbing))
    return (*waves, *((name,) for name in alone))


def _split(names: Sequence[str], disturbing: Mapping[str, frozenset[str]]) -> list[tuple[str, ...]]:
    """The fewest waves that a greedy colouring finds; quiet nodes all go into the first."""
    waves: list[list[str]] = [[]]
    felt: list[set[str]] = [set()]
    for name in names:
        by = disturbing.get(name, frozenset()) - {name}
        index = next((i for i, taken in enumerate(felt) if taken.isdisjoint(by)), None)
        if index is None:
            waves.append([])
            felt.append(set())
            index = len(waves) - 1
        waves[index].append(name)
        felt[index] |= by
    return [tuple(wave) for wave in waves if wave]
