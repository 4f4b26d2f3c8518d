"""A host hangs on one switch although the intent says two.

What it checks
    Where the intent says `topology.dual_homed: true` (also per network): the cables of every host in that
    network end on at least two switches.

Why it breaks RDMA
    The host was counted as redundant: a rollout disturbs its only switch while it carries a workload, and a
    failure of that switch takes the host away.
    Source: experience; the order of a rollout is computed from the cables.

Wrong
    gpu01,eth0,leaf01,Ethernet1/1,5
    gpu01,eth1,leaf01,Ethernet2/1,5

Right
    gpu01,eth0,leaf01,Ethernet1/1,5
    gpu01,eth1,leaf02,Ethernet1/1,5

When to waive it
    For a host with one NIC, when its single home is known.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.graphs import Cable
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Place, Severity


def _check(judged: Judged) -> Iterator[Hit]:
    for network, graph in judged.graphs().items():
        hosts: dict[str, list[Cable]] = {}
        for cable in graph.edge:
            hosts.setdefault(cable.below.node, []).append(cable)
        for name, cables in hosts.items():
            wish = judged.ports[name][cables[0].below.port].wishes.topology
            switches = {cable.above.node for cable in cables}
            if wish is not None and wish.dual_homed and len(switches) < 2:
                yield Hit(
                    setting="homes",
                    found=f"{switches.pop()} only ({len(cables)} cable{'s' if len(cables) > 1 else ''})",
                    wanted=f"two switches of network {network}",
                    message="{where} hangs on one switch",
                    help="move a cable to a second switch, or write dual_homed: false for this host",
                    position=cables[0].link.position,
                    places=(Place(name),),
                )


RULE = FabricRule("FAB057", "single-homed", Severity.ERROR, "0.1", "topology", _check, plan=True)
