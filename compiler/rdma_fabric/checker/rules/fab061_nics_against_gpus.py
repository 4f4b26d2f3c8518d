"""The rails of a host do not divide its GPUs evenly.

What it checks
    Where the inventory gives `gpus` and rails: the number of GPUs is a multiple of the number of rails, or
    the other way round; all rails together, or those of each network by themselves.

Why it breaks RDMA
    GPUs that share a NIC with others get less than the rest; the ring of a collective runs at the speed of
    the NIC that serves most GPUs.
    Source: NVIDIA DGX SuperPOD reference architecture (one NIC per GPU); NCCL topology search.

Wrong
    gpu: {data: {gpus: 8, ports: {"eth[0-2]": {rail: "[0-2]"}}}}

Right
    gpu: {data: {gpus: 8, ports: {"eth[0-3]": {rail: "[0-3]"}}}}

When to waive it
    For hosts whose GPUs do not take part in collectives.
"""

from collections import Counter
from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity


def _check(judged: Judged) -> Iterator[Hit]:
    for name in judged.views:
        spec = judged.inventory.nodes[name].spec
        rails = Counter(port.network for port in spec.ports.values() if port.network and port.rail)
        if not spec.gpus or not rails or _even(spec.gpus, rails.total()):
            continue
        for network, count in rails.items():
            if not _even(spec.gpus, count):
                yield Hit(
                    setting="rails",
                    found=f"{count} rails for {spec.gpus} GPUs",
                    wanted="as many for each GPU",
                    message=f"{{where}}: the rails of network {network} do not divide the GPUs evenly",
                    help="correct `gpus` or the ports that have a rail",
                    position=spec.positions.get("gpus", spec.position),
                    places=(Place(name),),
                )


def _even(gpus: int, rails: int) -> bool:
    return gpus % rails == 0 or rails % gpus == 0


RULE = FabricRule("FAB061", "nics-against-gpus", Severity.WARNING, "0.1", "inventory", _check, plan=True)
