"""Lossless buffers can wait for each other in a circle.

What it checks
    Along all shortest routes between switches with hosts: whether the buffers of a lossless priority wait
    for one another in a cycle (error), and whether they do when any one cable has failed (warning). A Clos
    whose routes go up and then down has none; a ring of four switches has. A link whose receiver sends no
    pause breaks a cycle. Also a warning: a cable between two switches of one tier that meet in another tier
    too, unless they are a pair (option `mlag`, or bonds of hosts on both). No shortest route closes a circle
    over it, but a detour does that comes down to one of the two and goes up again from the other.
    Up to three of all switches with equal neighbours are walked, the others are alike.
    Failures are walked while switches with hosts x pairs of neighbours x pairs stays below 200,000, plain
    routes below 5,000,000; beyond that the rule says that it did not judge.

Why it breaks RDMA
    In such a circle every switch can wait for the next one to empty its buffer: a deadlock of PFC. It lasts
    until a watchdog drops packets, and begins again.
    Source: Hu et al., "Tagger: Practical PFC Deadlock Prevention in Data Center Networks" (CoNEXT 2017);
    Guo et al., "RDMA over Commodity Ethernet at Scale" (SIGCOMM 2016), section 4.2.

Wrong
    leaf1 - leaf2 - leaf3 - leaf4 - leaf1, with hosts on all of them

Right
    every leaf on every spine, and no cable between leaves

When to waive it
    When the routing protocol never uses one of the links of the circle (a strict up-down policy).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from rdma_fabric.checker import routes
from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.graphs import Cable, Graph
from rdma_fabric.checker.routes import Neighbours, Pair
from rdma_fabric.checker.rules._common import apart, some
from rdma_fabric.checker.rules._pairs import switch_pairs
from rdma_fabric.checker.scopes import FabricRule, Hit, PortView
from rdma_fabric.findings import Place, Severity
from rdma_fabric.state import UNKNOWN, NotJudged

FAILURES: Final = 200_000
ROUTES: Final = 5_000_000

Pauses = Mapping[Pair, frozenset[int]]


def _check(judged: Judged) -> Iterator[Hit]:
    yield from apart(_network(judged, name, graph) for name, graph in judged.graphs().items())


def _network(judged: Judged, name: str, graph: Graph) -> Iterator[Hit]:
    pauses = _pauses(judged, graph)
    if not any(pauses.values()):  # also without a cable between switches
        return
    full = {node: frozenset(others) for node, others in graph.neighbours().items()}
    small = routes.reduced(
        full,
        lambda node: (
            graph.tiers.get(node) == 1,
            *((other, pauses[node, other], pauses[other, node]) for other in sorted(full[node])),
        ),
    )
    ends = [node for node in small if graph.tiers.get(node) == 1]
    pairs = sum(map(len, small.values())) // 2
    if len(ends) * pairs > ROUTES:
        raise NotJudged(UNKNOWN, f"every route of network {name} (the topology is too large)")
    found = _cycle(small, ends, pauses)
    if found:
        yield _hit(name, found, "")
        return
    yield from _shortcuts(judged, name, graph, pauses)
    if len(ends) * pairs * pairs > FAILURES:
        raise NotJudged(UNKNOWN, f"every route of network {name} after a failure (the topology is too large)")
    yield from _failures(name, small, ends, pauses, _single(graph))


def _shortcuts(judged: Judged, network: str, graph: Graph, pauses: Pauses) -> Iterator[Hit]:
    """Cables beside the ways up and down: on a detour a packet can turn up again over them."""
    neighbours, paired = graph.neighbours(), switch_pairs(judged, graph)
    beside: dict[frozenset[str], list[Cable]] = {}
    for cable in graph.trunk:
        one, other = cable.below.node, cable.above.node
        tier = graph.tiers.get(one)
        if tier != graph.tiers.get(other) or not pauses[one, other] & pauses[other, one]:
            continue
        meet = {graph.tiers.get(node) for node in neighbours[one] & neighbours[other]} - {tier}
        ends = frozenset((one, other))
        if meet and ends not in paired:
            beside.setdefault(ends, []).append(cable)
    for cables in beside.values():
        yield Hit(
            setting="lossless routes",
            found=f"{some([f'{one.below} - {one.above}' for one in cables])} between switches of one tier",
            wanted=f"only ways up and then down in network {network}",
            message="{where}: lossless routes can turn down and up again over a cable between equal tiers",
            help="remove the cable, switch PFC off on it, or say that the two are a pair (option mlag)",
            severity=Severity.WARNING,
            position=cables[0].link.position,
            places=tuple(Place(end.node, end.port) for one in cables for end in (one.below, one.above)),
        )


def _failures(
    name: str, small: Neighbours, ends: list[str], pauses: Pauses, single: set[Pair]
) -> Iterator[Hit]:
    for one, other in sorted(single):
        if one in small and other in small:
            left = {
                node: others - ({other} if node == one else {one} if node == other else set())
                for node, others in small.items()
            }
            found = _cycle(left, ends, pauses)
            if found:
                yield _hit(name, found, f"{one} - {other}")
                return


def _cycle(neighbours: Neighbours, ends: list[str], pauses: Pauses) -> tuple[str, ...]:
    """A cycle of waiting buffers of some priority."""
    waits = routes.waits(neighbours, ends)
    for priorities in _kinds(pauses):
        paused = {
            pair: {one for one in others if pauses[one] & priorities}
            for pair, others in waits.items()
            if pauses[pair] & priorities
        }
        found = routes.cycle(paused)
        if found:
            return found
    return ()


def _kinds(pauses: Pauses) -> list[frozenset[int]]:
    """Every priority once; those that are paused on the same links count as one."""
    links: dict[int, frozenset[Pair]] = {}
    for priority in sorted({one for sent in pauses.values() for one in sent}):
        links[priority] = frozenset(pair for pair, sent in pauses.items() if priority in sent)
    return [frozenset([priority]) for priority in {where: one for one, where in links.items()}.values()]


def _pauses(judged: Judged, graph: Graph) -> Pauses:
    """(from, to) -> priorities for which `to` pauses `from` on some cable between them."""
    found: dict[Pair, frozenset[int]] = {}
    sent: dict[int, frozenset[int]] = {}
    for cable in graph.trunk:
        for sender, receiver in ((cable.below, cable.above), (cable.above, cable.below)):
            view = judged.ports[receiver.node][receiver.port]
            priorities = sent.get(id(view))
            if priorities is None:
                priorities = sent[id(view)] = frozenset(_sent(view))
            pair = sender.node, receiver.node
            found[pair] = found[pair] | priorities if pair in found else priorities
    return found


def _sent(view: PortView) -> Iterator[int]:
    for priority, (have, want) in enumerate(
        zip(view.state.qos.classes, view.wanted.qos.classes, strict=True)
    ):
        # What could not be read is taken as wished.
        if (want.pfc_tx if have.pfc_tx is UNKNOWN else have.pfc_tx) is True:
            yield priority


def _single(graph: Graph) -> set[Pair]:
    """Neighbours with one cable between them: of several, one may fail without a change of routes."""
    counts: dict[Pair, int] = {}
    for cable in graph.trunk:
        one, other = sorted((cable.below.node, cable.above.node))
        counts[one, other] = counts.get((one, other), 0) + 1
    return {pair for pair, count in counts.items() if count == 1}


def _hit(network: str, found: tuple[str, ...], failed: str) -> Hit:
    after = f" when the cable {failed} fails" if failed else ""
    return Hit(
        setting="lossless routes",
        found=" -> ".join((*found, found[0])) + after,
        wanted=f"no circle of waiting buffers in network {network}",
        message="{where}: lossless buffers can wait for each other in a circle" + after,
        help="remove a link that shortens the way between equal tiers, or switch PFC off on it",
        severity=Severity.WARNING if failed else None,
        places=tuple(Place(node) for node in dict.fromkeys(found)),
    )


RULE = FabricRule("FAB059", "cyclic-buffers", Severity.ERROR, "0.1", "topology", _check, plan=True)
