"""The routing engine does not fit the cables, or takes the service levels.

What it checks
    `ftree` first in `subnet_manager.routing` needs a tree: hosts on leaves, leaves on spines, no cable
    between leaves or between spines, and LMC 0. `lash`, `nue`, `dfsssp` and `torus-2QoS` give service
    levels by themselves and collide with classes that have one.

Why it breaks RDMA
    OpenSM then falls back to the next engine (or to minhop) without a word outside its log; where engines
    hand out service levels, the lanes of the classes mean something else.
    Source: OpenSM manual page, ROUTING; its doc/current-routing.txt.

Wrong
    routing: [dfsssp]
    classes: {compute: {priority: 1, sl: 1}}

Right
    routing: [ftree, updn]

When to waive it
    While a tree is being cabled.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._infiniband import network, subnets, where
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Severity
from rdma_fabric.inventory.subnets import Subnet, ib_classes

_TAKE_LEVELS = ("lash", "nue", "dfsssp", "torus-2QoS")


def _check(judged: Judged) -> Iterator[Hit]:
    for subnet in subnets(judged):
        engines = subnet.manager.routing
        found, message = "", ""
        if engines[:1] == ("ftree",) and subnet.manager.lmc:
            found, message = "ftree", f"fat-tree routing does not work with lmc {subnet.manager.lmc}"
        if engines[:1] == ("ftree",) and (why := _no_tree(judged, subnet)):
            found, message = "ftree", f"the cables of network {subnet.network} are no fat tree: {why}"
        if ib_classes(subnet.wishes) and (taken := [one for one in engines if one in _TAKE_LEVELS]):
            found = taken[0]
            message = f"routing engine {found} gives service levels by itself, the classes have their own"
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


def _no_tree(judged: Judged, subnet: Subnet) -> str:
    """Why the cables are no fat tree; "" when they are (or when nothing is cabled)."""
    leaves, links = set(), []
    for link in judged.links():
        ends = (link.a, link.b)
        if any(
            judged.inventory.nodes[end.node].spec.ports[end.port].network != subnet.network for end in ends
        ):
            continue
        names = [end.node for end in ends]
        switches = [name for name in names if name in subnet.switches]
        if len(switches) == 1:
            leaves.update(switches)
        elif len(switches) == 2:
            links.append((names[0], names[1]))
    beside = [pair for pair in links if pair[0] in leaves and pair[1] in leaves]
    if beside:
        return f"{beside[0][0]} and {beside[0][1]} both have hosts and are cabled to each other"
    spines = {name for pair in links for name in pair} - leaves
    above = [pair for pair in links if pair[0] in spines and pair[1] in spines and not _third(pair, links)]
    if above:
        return f"{above[0][0]} and {above[0][1]} are cabled to each other"
    return ""


def _third(pair: tuple[str, str], links: list[tuple[str, str]]) -> bool:
    """True when only one of the two has cables further down: it is then a level of its own."""
    down = [{name for one in links if end in one for name in one} - set(pair) for end in pair]
    return not (down[0] and down[1])


RULE = FabricRule("FAB076", "routing-topology", Severity.WARNING, "0.1", "infiniband", _check, plan=True)
