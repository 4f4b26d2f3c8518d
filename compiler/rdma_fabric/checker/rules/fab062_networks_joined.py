"""A cable joins two networks.

What it checks
    Both ends of every cable that has two ends in networks are in the same one. Ports of networks that the
    intent does not name are another finding.

Why it breaks RDMA
    Networks are kept apart because they have values of their own. Over such a cable packets of one enter
    the other, with another MTU or another class, and its loss or its pauses come along.
    Source: experience; NVIDIA DGX SuperPOD reference architecture (compute and storage fabrics are separate).

Wrong
    gpu01,eth8,leaf01,Ethernet1/1,5      # eth8 is in network storage, the leaf's port in compute

Right
    gpu01,eth8,stor01,Ethernet1/1,5

When to waive it
    For a cable that joins two networks on purpose, with equal settings on both sides.
"""

from collections import Counter
from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity
from rdma_fabric.inventory.types import End, Link


def _check(judged: Judged) -> Iterator[Hit]:
    joined = [(link, *names) for link in judged.links() if (names := _networks(judged, link))]
    ends: Counter[End] = Counter()
    if joined:
        ends.update(end for link in judged.links() for end in (link.a, link.b))
    for link, one, other in joined:
        if max(ends[link.a], ends[link.b]) > 1:
            continue  # a port in two cables: nobody knows which of them is meant
        yield Hit(
            setting="network",
            found=f"{one} at {link.a}, {other} at {link.b}",
            wanted="the same network at both ends",
            message="{where}: the cable joins two networks",
            help="correct the cable plan, or the network of one of the ports",
            position=link.position,
            places=tuple(Place(end.node, end.port) for end in (link.a, link.b)),
        )


def _networks(judged: Judged, link: Link) -> tuple[str, str] | None:
    """The two networks that a cable joins, both of which the intent knows."""
    declared = judged.resolved.intent.networks
    a = judged.ports.get(link.a.node, {}).get(link.a.port)
    b = judged.ports.get(link.b.node, {}).get(link.b.port)
    if a is None or b is None or a.network == b.network:
        return None
    if declared and not {a.network, b.network} <= declared.keys():
        return None
    return a.network, b.network


RULE = FabricRule("FAB062", "networks-joined", Severity.ERROR, "0.1", "topology", _check, plan=True)
