"""A wish stands where nobody reads it.

What it checks
    Every key of the intent, its networks and overrides, and of the inventory's groups, nodes and ports,
    against the places that it gets to: host settings on switches, ECN and headroom on hosts, PFC and the like
    on InfiniBand ports, service levels and a subnet manager without an InfiniBand network, settings of a kind
    of NIC that none of the ports has. Of what is said for the whole fabric only keys of InfiniBand and of a
    kind of NIC are told, as notes, since nodes may come for them. RoCE's keys in an InfiniBand network are
    FAB077.

Why it breaks RDMA
    The wish looks right in the file and changes nothing: those ports go on as they were, and whoever looks
    for the cause reads that it is set.
    Source: experience.

Wrong
    overrides:
      - {where: "role=gpu", set: {ecn.400G.kmax: 3MB}}       # hosts do not mark

Right
    overrides:
      - {where: "role=leaf", set: {ecn.400G.kmax: 3MB}}

When to waive it
    Never: remove the key until there are ports for it.
"""

from collections.abc import Iterator

from rdma_fabric import platforms
from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Severity


def _check(judged: Judged) -> Iterator[Hit]:
    for one in judged.resolved.idle:
        if _elsewhere(one.path):
            continue
        key = ".".join(one.path)
        yield Hit(
            setting=key,
            found=f"set for {one.label}",
            wanted=one.readers,
            message=f"{key} of {one.label} reaches nothing: only {one.readers} read it",
            help="set it where it counts, or remove it",
            severity=Severity.NOTE if one.broad else None,
            position=one.position,
        )


def _elsewhere(path: tuple[str, ...]) -> bool:
    """True for a kind of NIC that does not exist, or that has no such settings: FAB084 tells it."""
    if path[0] != "hosts" or len(path) < 3:
        return False
    kind = path[2]
    return kind not in platforms.nics() or (
        path[1] == "nv" and not platforms.platform(f"nic_{kind}").traits.nv
    )


RULE = FabricRule("FAB087", "wish-reaches-nothing", Severity.WARNING, "0.1", "intent", _check, plan=True)
