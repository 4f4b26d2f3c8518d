"""Shortest routes between switches with hosts, and which buffers wait for which along them.

A buffer is a directed pair of neighbours (u, v): what v holds of u's packets. It waits for (v, w) when some
route enters v from u and leaves to w. A cycle is what a deadlock of PFC needs.
Source: Hu et al., "Tagger: Practical PFC Deadlock Prevention in Data Center Networks" (CoNEXT 2017).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

Pair = tuple[str, str]
Neighbours = Mapping[str, frozenset[str]]

ALIKE: Final = 3
"""Of switches with equal neighbours so many are kept: any route of the others is one of these', renamed."""


def reduced(neighbours: Neighbours, kind: Callable[[str], object]) -> dict[str, frozenset[str]]:
    """The same graph with at most ALIKE of all switches that have equal neighbours and one `kind`."""
    seen: dict[object, int] = {}
    kept = set()
    for node in neighbours:
        key = (neighbours[node], kind(node))
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= ALIKE:
            kept.add(node)
    return {node: neighbours[node] & kept for node in neighbours if node in kept}


def waits(neighbours: Neighbours, ends: Iterable[str]) -> dict[Pair, set[Pair]]:
    """Buffer -> buffers that it waits for, on all shortest routes between `ends`."""
    found: dict[Pair, set[Pair]] = {}
    ends = [node for node in ends if node in neighbours]
    for target in ends:
        distance = _distances(neighbours, target)
        on_route = _descend(neighbours, distance, [node for node in ends if node != target])
        for node in on_route:
            if node == target:
                continue
            onward = [one for one in neighbours[node] if distance.get(one) == distance[node] - 1]
            for before in neighbours[node] & on_route:
                if distance[before] == distance[node] + 1:
                    found.setdefault((before, node), set()).update((node, one) for one in onward)
    return found


def _distances(neighbours: Neighbours, target: str) -> dict[str, int]:
    found = {target: 0}
    row = deque([target])
    while row:
        node = row.popleft()
        for other in neighbours[node]:
            if other not in found:
                found[other] = found[node] + 1
                row.append(other)
    return found


def _descend(neighbours: Neighbours, distance: Mapping[str, int], starts: Iterable[str]) -> set[str]:
    """All switches that some shortest route from `starts` passes, the target included."""
    found = {node for node in starts if node in distance}
    row = list(found)
    while row:
        node = row.pop()
        for other in neighbours[node]:
            if other not in found and distance[other] == distance[node] - 1:
                found.add(other)
                row.append(other)
    return found


def cycle(graph: Mapping[Pair, set[Pair]]) -> tuple[str, ...]:
    """Switches of one cycle in order, or () when there is none."""
    done: set[Pair] = set()
    for start in sorted(graph):
        if start not in done:
            found = _cycle_from(start, graph, done)
            if found:
                return found
    return ()


def _cycle_from(start: Pair, graph: Mapping[Pair, set[Pair]], done: set[Pair]) -> tuple[str, ...]:
    path: list[Pair] = []
    place: dict[Pair, int] = {}
    rest: list[Iterator[Pair]] = []

    def enter(one: Pair) -> None:
        place[one] = len(path)
        path.append(one)
        rest.append(iter(sorted(graph.get(one, ()))))

    enter(start)
    while path:
        following = next(rest[-1], None)
        if following is None:
            rest.pop()
            last = path.pop()
            del place[last]
            done.add(last)
        elif following in place:
            return tuple(one[0] for one in path[place[following] :])
        elif following not in done:
            enter(following)
    return ()
