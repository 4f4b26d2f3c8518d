"""The two switches of a pair treat one host differently.

What it checks
    Wherever two cables of a host end on two switches that act as one for it: the members of a bond, or all
    its ports in a network where both switches have the same option `mlag` in the inventory. The two
    ports are wished to have the same PFC, trust and DSCP map (error), MTU and ECN (warning). Of each value of
    `mlag` there are exactly two switches.

Why it breaks RDMA
    The hash picks the member: half of the flows are lossless and the other half are not, or large packets
    pass one switch only. MLAG itself refuses or suspends members that differ.
    Source: Arista EOS user manual, MLAG (configuration consistency); Cisco NX-OS vPC consistency parameters.

Wrong
    leaf02: {data: {ports: {"Ethernet1/1": {set: {trust: pcp}}}}}      # leaf01, its pair, trusts DSCP

Right
    settings of a pair in their common group

When to waive it
    While the two switches of a pair are changed one after the other.
"""

from collections import Counter
from collections.abc import Iterator

from rdma_fabric.checker.blame import MAJORITY_NODES, MAJORITY_SHARE
from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.graphs import Cable
from rdma_fabric.checker.rules._common import some
from rdma_fabric.checker.rules._pairs import OPTION, domains, host_pairs
from rdma_fabric.checker.scopes import FabricRule, Hit, PortView
from rdma_fabric.findings import Place, Severity
from rdma_fabric.settings import group_of

_HARD = ("qos.trust", "qos.dscp_to_priority", "qos.pfc")
_SOFT = ("mtu.ip", *(f"qos.classes.{priority}.ecn" for priority in range(8)))

_FOLLOWS_FROM = {"dscp_to_priority": ("qos.trust",), "ecn": ("qos.pfc",)}
"""Without the same trust there is not the same map; a class that is lossy at one of them marks nothing."""


def _check(judged: Judged) -> Iterator[Hit]:
    for word, names in domains(judged).items():
        if len(names) != 2:
            yield _lonely(judged, word, names)
    alike: dict[tuple[int, int], list[tuple[Cable, Cable]]] = {}
    for one, other in host_pairs(judged, judged.graphs().values()):
        first, second = _view(judged, one), _view(judged, other)
        if first.base == second.base:
            alike.setdefault((id(first), id(second)), []).append((one, other))
    for pairs in alike.values():
        yield from _compare(judged, pairs)


def _lonely(judged: Judged, word: str, names: list[str]) -> Hit:
    return Hit(
        setting=OPTION,
        found=f"{some(names)} in pair {word}",
        wanted="two switches",
        message="{where}: a pair has two switches",
        help="correct the option mlag of these switches",
        position=judged.inventory.nodes[names[0]].spec.position,
        places=tuple(Place(name) for name in names),
    )


def _view(judged: Judged, cable: Cable) -> PortView:
    return judged.ports[cable.above.node][cable.above.port]


def _compare(judged: Judged, pairs: list[tuple[Cable, Cable]]) -> Iterator[Hit]:
    """Equal pairs of cables: one is compared, all are named."""
    one, other = pairs[0]
    first, second = _view(judged, one), _view(judged, other)
    if first.wishes.rdma.transport != second.wishes.rdma.transport:
        return  # another rule tells which of the two cannot do its network's transport
    told: set[str] = set()
    for key in (*_HARD, *_SOFT):
        group = group_of(key)
        values = group.show(first.wanted), group.show(second.wanted)
        if values[0] != values[1] and told.isdisjoint(_FOLLOWS_FROM.get(key.rpartition(".")[2], ())):
            told.add(key)
            odd = [index for index, cable in enumerate((one, other)) if _odd(judged, cable, key)]
            sides = odd if len(odd) == 1 else [0, 1]
            wrong = [pair[side].above for pair in pairs for side in sides]
            hosts = [pair[0].below.node for pair in pairs]
            yield Hit(
                setting=key,
                found=f"{values[0]} at {one.above}, {values[1]} at {other.above}",
                wanted="the same on both switches of the pair",
                message=f"{{where}}: the {group.title} of the two switches of {some(hosts)} differs",
                help="set it alike on both switches, in their group",
                severity=None if key in _HARD else Severity.WARNING,
                position=one.link.position,
                places=tuple(Place(end.node, end.port) for end in dict.fromkeys(wrong)),
            )


def _odd(judged: Judged, cable: Cable, key: str) -> bool:
    """True when four of five such switch ports of other nodes, of this network or else of the fabric, have
    another value; False where there are less than three other nodes."""
    own, show = _view(judged, cable), group_of(key).show
    others = {
        name: [view for view in ports.values() if view.base == own.base and not view.is_host]
        for name, ports in judged.ports.items()
        if name != cable.above.node
    }
    near = {name: [view for view in views if view.network == own.network] for name, views in others.items()}
    for nodes in (near, others):
        if sum(1 for views in nodes.values() if views) >= MAJORITY_NODES:
            values = Counter(show(view.wanted) for views in nodes.values() for view in views)
            value, count = values.most_common(1)[0]
            return value != show(own.wanted) and count >= MAJORITY_SHARE * values.total()
    return False


RULE = FabricRule("FAB058", "pair-differs", Severity.ERROR, "0.1", "topology", _check, plan=True)
