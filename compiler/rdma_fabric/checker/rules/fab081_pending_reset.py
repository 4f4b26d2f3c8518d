"""A setting is written and waits for a reset.

What it checks
    Settings of observed nodes that are not in force, and will be after the next reset or reboot: non-volatile
    settings of a NIC, options of a kernel module.

Why it breaks RDMA
    Until then the node works with the old value. It looks configured, and nobody sees that half of the
    cluster was never reset.
    Source: NVIDIA mlxconfig (current and next-boot configuration); modprobe.d(5).

Wrong
    hosts.nv with CNP_DSCP: 48     # written to all cards, and no card was reset since

Right
    the same, and each host drained and rebooted (or its cards reset) once

When to waive it
    Until the maintenance window in which the hosts are rebooted.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import deviations
from rdma_fabric.state import differences


def _check(node: NodeView) -> Iterator[Hit]:
    found = (one for one in differences(node.wanted, node.state) if one.path in node.waiting)
    for one in deviations(found, node.wanted, node.state):
        yield Hit(
            setting=f"{one.port}|{one.key}",
            found=f"{one.found} (after a reset {one.wanted})",
            wanted=one.wanted,
            message=f"{{where}}: {one.title} is written, and waits for a reset",
            help="drain the node and reboot it, or reset its card; fabric never does that by itself",
            # One cause: not in force, and different from the intent.
            rank=3,
        )


RULE = NodeRule("FAB081", "pending-reset", Severity.ERROR, "0.1", "observed", _check)
