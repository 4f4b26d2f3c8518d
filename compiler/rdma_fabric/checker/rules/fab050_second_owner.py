"""Another program writes the same settings.

What it checks
    Agents found on an observed node that own QoS or MTU too: an LLDP agent with DCBX, a NIC operator, a
    fabric manager, a vendor's RoCE macro.

Why it breaks RDMA
    Two owners take turns: what was applied holds until the other one runs again, at the next boot, link
    flap or reconcile loop.
    Source: open-lldp lldptool-pfc(8) (the agent writes PFC by itself); NVIDIA NIC configuration operator.

Wrong
    lldpad running on a host whose PFC is set by `fabric`

Right
    systemctl disable --now lldpad

When to waive it
    While the other owner is given the same values and will be removed.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.state import Absent


def _check(node: NodeView) -> Iterator[Hit]:
    owners = node.state.system.owners
    if node.observed and not isinstance(owners, Absent) and owners:
        yield Hit(
            setting="owners",
            found=", ".join(owners),
            wanted="nobody but fabric",
            message="{where}: another program writes the same settings",
            help="switch it off on this node, or leave these settings out of the intent",
        )


RULE = NodeRule("FAB050", "second-owner", Severity.WARNING, "0.1", "observed", _check)
