"""A switch has less bandwidth up than the intent allows.

What it checks
    Where the intent says `topology.oversubscription` (also per network): the bandwidth of every switch
    towards hosts or lower tiers against that towards higher tiers. Tiers are counted from the hosts; the
    highest tier has nothing above it. Cables of unknown speed are left out.

Why it breaks RDMA
    Jobs that were sized for a non-blocking fabric meet in the uplinks: queues grow, PFC pauses the senders,
    and the pauses spread to flows that never use the uplink.
    Source: DCQCN paper (SIGCOMM 2015), section 2.2 (parking lot and victim flows).

Wrong
    topology: {oversubscription: "1:1"}      # 32 host ports and 16 uplinks of the same speed on each leaf

Right
    topology: {oversubscription: "2:1"}      # or 16 more uplinks

When to waive it
    While uplinks are added, or for a leaf that carries less than its ports could.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.graphs import Graph
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Position, Severity
from rdma_fabric.intent.quantities import Ratio
from rdma_fabric.inventory.types import End


def _check(judged: Judged) -> Iterator[Hit]:
    for graph in judged.graphs().values():
        below, above = _sums(graph)
        for node, end in _ends(graph).items():
            wish = judged.ports[node][end.port].wishes.topology
            if wish is None or wish.oversubscription is None or not (below.get(node) and above.get(node)):
                continue
            if below[node] > wish.oversubscription.value * above[node]:
                yield _hit(node, below[node], above[node], wish.oversubscription, _position(judged, end))


def _sums(graph: Graph) -> tuple[dict[str, int], dict[str, int]]:
    """Gbit/s of every switch towards lower and towards higher tiers."""
    below: dict[str, int] = {}
    above: dict[str, int] = {}
    for cable in graph.edge:
        below[cable.above.node] = below.get(cable.above.node, 0) + cable.gbps
    for cable in graph.trunk:
        low, high = sorted((cable.below.node, cable.above.node), key=lambda node: graph.tiers.get(node, 0))
        if graph.tiers.get(low, 0) < graph.tiers.get(high, 0):
            above[low] = above.get(low, 0) + cable.gbps
            below[high] = below.get(high, 0) + cable.gbps
    return below, above


def _ends(graph: Graph) -> dict[str, End]:
    """Switch -> one of its ports in this network."""
    found: dict[str, End] = {}
    for cable in (*graph.edge, *graph.trunk):
        found.setdefault(cable.above.node, cable.above)
        if cable.below.node in graph.tiers:
            found.setdefault(cable.below.node, cable.below)
    return found


def _position(judged: Judged, end: End) -> Position | None:
    return judged.resolved.plans[end.node].ports[end.port].merged.position(("topology", "oversubscription"))


def _hit(node: str, below: int, above: int, wish: Ratio, position: Position | None) -> Hit:
    return Hit(
        setting="oversubscription",
        found=f"{below / above:.3g}:1 ({below}G below, {above}G above)",
        wanted=f"at most {wish}",
        message="{where}: less bandwidth up than the intent allows",
        help="add uplinks, move hosts, or write the ratio that is meant",
        position=position,
        places=(Place(node),),
    )


RULE = FabricRule("FAB056", "oversubscribed", Severity.WARNING, "0.1", "topology", _check, plan=True)
