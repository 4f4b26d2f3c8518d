"""A lossless class is paused nowhere in its network.

What it checks
    For every RoCE network with RDMA ports of hosts: of each lossless class some port is wished to have PFC.
    `pfc: {enabled: false}` for all ports, or `pfc: false` in the class, leaves a class lossless by name only.
    PFC at one end of a cable only is another rule.

Why it breaks RDMA
    Nothing stops a sender before the queue is full: the class drops, and the RoCE of most NICs then goes back
    to the first lost packet and sends all of it again.
    Source: IEEE 802.1Qbb; Guo et al., "RDMA over Commodity Ethernet at Scale" (SIGCOMM 2016), section 2.

Wrong
    classes: {roce: {priority: 3, dscp: [26], lossless: true}}
    pfc: {enabled: false}

Right
    classes: {roce: {priority: 3, dscp: [26]}}     # lossy RoCE says so

When to waive it
    While PFC is off for a measurement.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit, PortView
from rdma_fabric.findings import Place, Severity
from rdma_fabric.intent.models import TrafficClass, Wishes
from rdma_fabric.inventory.types import End


def _check(judged: Judged) -> Iterator[Hit]:
    networks: dict[str, dict[int, tuple[PortView, End]]] = {}
    for node, ports in judged.ports.items():
        for name, view in ports.items():
            networks.setdefault(view.network, {}).setdefault(id(view), (view, End(node, name)))
    for network, kinds in networks.items():
        yield from _network(judged, network, list(kinds.values()))


def _network(judged: Judged, network: str, kinds: list[tuple[PortView, End]]) -> Iterator[Hit]:
    told: set[str] = set()
    for view, end in kinds:
        if not view.is_host or not view.hw.rdma or view.wishes.rdma.transport != "rocev2":
            continue
        for name, one in view.wishes.classes.items():
            if name in told or not one.lossless or any(_paused(other.wishes, name) for other, _ in kinds):
                continue
            told.add(name)
            yield _hit(judged, network, name, one, end)


def _paused(wishes: Wishes, name: str) -> bool:
    one = wishes.classes.get(name)
    on = wishes.pfc is None or wishes.pfc.enabled
    return one is not None and one.lossless and on and (one.pfc.tx or one.pfc.rx)


def _hit(judged: Judged, network: str, name: str, one: TrafficClass, end: End) -> Hit:
    own = not (one.pfc.tx or one.pfc.rx)
    merged = judged.resolved.plans[end.node].ports[end.port].merged
    return Hit(
        setting="PFC of lossless classes",
        found=f"class {name}: lossless, PFC off",
        wanted=f"PFC for priority {one.priority}, or a lossy class",
        message=f"{{where}}: lossless class {name} is paused nowhere",
        help=f"switch PFC on, or take lossless out of class {name}",
        position=merged.position(("classes", name, "pfc") if own else ("pfc", "enabled")),
        places=(Place(network=network),),
    )


RULE = FabricRule("FAB085", "lossless-without-pfc", Severity.WARNING, "0.1", "pfc", _check, plan=True)
