"""Two nodes have the same management address.

What it checks
    `hostname` together with the SSH port is different for every node.

Why it breaks RDMA
    A push to one node would configure the other: the wrong device gets settings that were checked for
    somebody else, and the right one gets none.
    Source: experience.

Wrong
    leaf01: {hostname: 192.0.2.11}
    leaf02: {hostname: 192.0.2.11}

Right
    leaf[01-02]: {hostname: "192.0.2.[11-12]"}

When to waive it
    Never: nodes behind one address have different SSH ports.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.rules._common import some
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity


def _check(judged: Judged) -> Iterator[Hit]:
    found: dict[tuple[str, int], list[str]] = {}
    for name, node in judged.inventory.nodes.items():
        found.setdefault((node.hostname.lower(), node.spec.ssh_port), []).append(name)
    for (address, _), names in found.items():
        if len(names) > 1:
            yield Hit(
                setting="hostname",
                found=f"{address} for {some(names)}",
                wanted="an address of its own for each node",
                message="{where} have the same management address",
                help="correct one of the addresses in hosts.yaml",
                position=judged.inventory.nodes[names[0]].position,
                places=tuple(Place(name) for name in names),
            )


RULE = FabricRule("FAB046", "address-twice", Severity.ERROR, "0.1", "inventory", _check, plan=True)
