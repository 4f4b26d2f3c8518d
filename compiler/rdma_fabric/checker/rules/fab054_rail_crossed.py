"""A rail is cabled to another rail's switch.

What it checks
    Where the inventory numbers rails (`rail`) and a switch carries mostly one of them (more than two thirds
    of at least three cables): no cable of another rail ends there that has a switch of its own.

Why it breaks RDMA
    A rail-optimised fabric keeps traffic between equal rails on one switch. A crossed cable sends it over
    the spines, where it meets other jobs; the rail is slower than the others, and a collective waits for it.
    Source: NVIDIA DGX SuperPOD reference architecture (rail-optimised: port n of every host on leaf n).

Wrong
    gpu[01-04],eth0,leaf01,Ethernet[1-4]/1,5      # and gpu02's eth1 on leaf01 too

Right
    gpu[01-04],eth0,leaf01,Ethernet[1-4]/1,5
    gpu[01-04],eth1,leaf02,Ethernet[1-4]/1,5

When to waive it
    While a broken port of the right switch is bridged over another one.
"""

from collections import Counter
from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.graphs import Graph
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.types import End

_LEAST = 3


def _check(judged: Judged) -> Iterator[Hit]:
    nodes = judged.inventory.nodes

    def rail(end: End) -> str:
        return nodes[end.node].spec.ports[end.port].rail

    for graph in judged.graphs().values():
        home = _homes(graph, {one.below: rail(one.below) for one in graph.edge})
        owned = set(home.values())
        for cable in graph.edge:
            own, whose = rail(cable.below), home.get(cable.above.node)
            if whose and own and own != whose and own in owned:
                right = sorted(node for node, one in home.items() if one == own)
                yield Hit(
                    setting="rail",
                    found=f"rail {own} on {cable.above.node}, which carries rail {whose}",
                    wanted=f"a switch of rail {own} ({right[0]}{' ...' if len(right) > 1 else ''})",
                    message=f"{{where}}: rail {own} is cabled to a switch of rail {whose}",
                    help="swap the cables, or correct the cable plan or the rail",
                    position=cable.link.position,
                    places=(Place(cable.below.node, cable.below.port),),
                )


def _homes(graph: Graph, rails: dict[End, str]) -> dict[str, str]:
    """Switch -> the rail that it is for; switches of several rails are left out."""
    counts: dict[str, Counter[str]] = {}
    for cable in graph.edge:
        if rails[cable.below]:
            counts.setdefault(cable.above.node, Counter())[rails[cable.below]] += 1
    found = {}
    for node, counter in counts.items():
        rail, most = counter.most_common(1)[0]
        if counter.total() >= _LEAST and 3 * most > 2 * counter.total():
            found[node] = rail
    return found


RULE = FabricRule("FAB054", "rail-crossed", Severity.ERROR, "0.1", "topology", _check, plan=True)
