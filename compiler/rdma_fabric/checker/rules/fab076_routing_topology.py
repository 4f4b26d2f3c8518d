"""The routing engine does not fit the cables, or takes the service levels.

What it checks
    `ftree` first in `subnet_manager.routing` needs a tree: hosts on leaves, every other cable between
    neighbouring tiers (two switches equally far from hosts are not cabled to each other), and LMC 0. `lash`,
    `nue`, `dfsssp` and `torus-2QoS` give service levels by themselves and collide with classes that have one.
    `minhop` (also where `routing` is empty) and `sssp` take any shortest route: the cables must be such that
    the lanes along shortest routes cannot wait for each other in a circle.

Why it breaks RDMA
    OpenSM then falls back to the next engine (or to minhop) without a word outside its log; where engines
    hand out service levels, the lanes of the classes mean something else. InfiniBand never drops for want of
    room: in a circle of lanes that wait for each other all of them stand still.
    Source: OpenSM manual page, ROUTING; its doc/current-routing.txt.

Wrong
    routing: [dfsssp]
    classes: {compute: {priority: 1, sl: 1}}

Right
    routing: [ftree, updn]        # updn has no such circle on any cables

When to waive it
    While a tree is being cabled.
"""

from collections.abc import Iterator
from typing import Final

from rdma_fabric.checker import routes
from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.graphs import Graph
from rdma_fabric.checker.rules._common import apart
from rdma_fabric.checker.rules._infiniband import network, subnets, where
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import SM_OURS
from rdma_fabric.inventory.subnets import Subnet, ib_classes
from rdma_fabric.state import UNKNOWN, NotJudged

_TAKE_LEVELS: Final = ("lash", "nue", "dfsssp", "torus-2QoS")
_ANY_ROUTE: Final = ("minhop", "sssp")
_LARGEST: Final = 5_000_000
"""Switches with hosts x pairs of neighbours, up to which routes are walked."""


def _check(judged: Judged) -> Iterator[Hit]:
    yield from apart(_subnet(judged, subnet) for subnet in subnets(judged))


def _subnet(judged: Judged, subnet: Subnet) -> Iterator[Hit]:
    graph = judged.graphs().get(subnet.network)
    found, message = _trouble(subnet, graph) if subnet.manager.nodes else ("", "")
    if message:
        yield Hit(
            setting="routing engine",
            found=found,
            wanted="one that fits the cables and leaves service levels alone",
            message=message,
            help="use updn, or ftree where the cables are a tree",
            position=where(judged, subnet, "routing"),
            places=network(subnet),
        )


def _trouble(subnet: Subnet, graph: Graph | None) -> tuple[str, str]:
    """(engine, what is wrong with it); empty texts when all is well."""
    engines = subnet.manager.routing
    taken = [one for one in engines if one in _TAKE_LEVELS]
    if taken and ib_classes(subnet.wishes):
        return taken[
            0
        ], f"routing engine {taken[0]} gives service levels by itself, the classes have their own"
    if engines[:1] == ("ftree",):
        if why := _no_tree(graph):
            return "ftree", f"the cables of network {subnet.network} are no fat tree: {why}"
        if subnet.manager.lmc:
            return "ftree", f"fat-tree routing does not work with lmc {subnet.manager.lmc}"
    first = engines[0] if engines else "minhop" if subnet.manager.owner in SM_OURS else ""
    if first in _ANY_ROUTE and (circle := _circle(graph)):
        told = f"{first}, the default" if not engines else first
        return (
            told,
            f"lanes can wait for each other in a circle on the shortest routes: {' -> '.join(circle)}",
        )
    return "", ""


def _no_tree(graph: Graph | None) -> str:
    """Why the cables are no fat tree; "" when they are (or when nothing is cabled)."""
    for cable in graph.trunk if graph else ():
        one, other = cable.below.node, cable.above.node
        tiers = {graph.tiers.get(one), graph.tiers.get(other)} if graph else set()
        if tiers == {1}:
            return f"{one} and {other} both have hosts and are cabled to each other"
        if len(tiers) == 1:
            return f"{one} and {other} are cabled to each other"
    return ""


def _circle(graph: Graph | None) -> tuple[str, ...]:
    """Switches of a circle of waiting lanes on shortest routes; () without one."""
    if graph is None or not graph.trunk:
        return ()
    full = {node: frozenset(others) for node, others in graph.neighbours().items()}
    small = routes.reduced(full, lambda node: graph.tiers.get(node) == 1)
    ends = [node for node in small if graph.tiers.get(node) == 1]
    if len(ends) * sum(map(len, small.values())) // 2 > _LARGEST:
        raise NotJudged(UNKNOWN, "every shortest route of the subnet (the topology is too large)")
    found = routes.cycle(routes.waits(small, ends))
    return (*found, found[0]) if found else ()


RULE = FabricRule("FAB076", "routing-topology", Severity.WARNING, "0.1", "infiniband", _check, plan=True)
