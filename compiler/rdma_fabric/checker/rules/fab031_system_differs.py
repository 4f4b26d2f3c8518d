"""A node-wide setting is not what the intent says.

What it checks
    Kernel settings, modules and their options, user limits and the job environment of observed hosts.

Why it breaks RDMA
    A missing module or memlock limit stops RDMA from starting at all; a missing sysctl sends replies out of
    the wrong rail. All of it works again after a reboot, or stops working then.
    Source: Linux Documentation/networking/ip-sysctl.rst (arp_ignore, arp_announce); rdma-core README.

Wrong
    net.ipv4.conf.all.arp_ignore = 0 on a host with several ports in one subnet

Right
    hosts: {sysctl: {net.ipv4.conf.all.arp_ignore: 1}}, and `fabric apply`

When to waive it
    While a value is tried out on one host on purpose.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import deviations
from rdma_fabric.state import differences

_FOLLOW = ("sm.role", "sm.loaded", "sm.lids")
"""What a subnet manager that does not run cannot have."""


def _check(node: NodeView) -> Iterator[Hit]:
    if not node.observed:
        return
    found = differences(node.wanted.system, node.state.system, "system")
    every = deviations(found, node.wanted, node.state)
    stopped = any(one.key == "sm.running" and not one.unknown for one in every)
    for one in every:
        if one.unknown or (stopped and one.key in _FOLLOW):
            continue
        yield Hit(
            setting=one.key,
            found=one.found,
            wanted=one.wanted,
            message=f"{{where}}: {one.title} differs from the intent",
            severity=Severity.WARNING if one.key == "sm.lids" else None,
            help="run `fabric apply` for this node, or change the intent if the node is right",
        )


RULE = NodeRule("FAB031", "system-differs", Severity.ERROR, "0.1", "observed", _check)
