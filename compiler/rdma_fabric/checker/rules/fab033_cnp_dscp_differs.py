"""Hosts of one network send CNPs with different DSCPs, or with one that the switches do not know.

What it checks
    The CNP DSCP of all host ports of a network, and whether it belongs to the CNP class of the network's
    switch ports. The priority may differ between hosts and switches.

Why it breaks RDMA
    The switch gives the strict CNP queue to one DSCP. CNPs with another one share a queue with bulk
    traffic, arrive late, and only the flows towards those hosts are slowed too little.
    Source: vendor defaults disagree (48 in most guides, 4 in some NIC tooling); DCQCN paper, section 3.

Wrong
    overrides:
      - {where: "gpu01", set: {classes.cnp.dscp: [4]}}

Right
    classes:
      cnp: {priority: 6, dscp: [48], scheduler: strict}

When to waive it
    While the hosts are moved to a new CNP DSCP and both are in the switches' CNP class.
"""

from collections import Counter
from collections.abc import Iterator

from rdma_fabric.checker.rules._common import named_dscps
from rdma_fabric.checker.scopes import Hit, NetworkRule, NetworkView, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.resolve import class_of_kind
from rdma_fabric.settings import ranges
from rdma_fabric.state import Absent


def _check(network: NetworkView) -> Iterator[tuple[PortView, Hit]]:
    hosts: Counter[int] = Counter()
    known_to_switches: set[int] = set()
    for view, count in network.ports:
        dscp = view.assumed.marking.cnp_dscp
        if view.is_host and not isinstance(dscp, Absent):
            hosts[dscp] += count
        elif not view.is_host and (cnp := class_of_kind(view.wishes, "cnp")):
            known_to_switches.update(named_dscps(cnp))
    if not hosts:
        return
    right = known_to_switches or {max(hosts, key=lambda dscp: (hosts[dscp], -dscp))}
    for view, _ in network.ports:
        dscp = view.assumed.marking.cnp_dscp
        if view.is_host and not isinstance(dscp, Absent) and _wrong(view, dscp, right):
            yield view, _hit(dscp, right, bool(known_to_switches))


def _wrong(view: PortView, dscp: int, right: set[int]) -> bool:
    return dscp not in right and (view.wishes.dcqcn is None or view.wishes.dcqcn.enabled)


def _hit(dscp: int, right: set[int], by_switches: bool) -> Hit:
    whose = "the CNP class of the switches" if by_switches else "most hosts of the network"
    return Hit(
        setting="marking.cnp_dscp",
        found=str(dscp),
        wanted=f"{ranges(right)} ({whose})",
        message=f"{{where}}: CNP DSCP {dscp} is not that of {whose}",
        help=f"set the CNP DSCP to {ranges(right)} on every host",
        rank=20,
    )


RULE = NetworkRule("FAB033", "cnp-dscp-differs", Severity.ERROR, "0.1", "qos", _check)
