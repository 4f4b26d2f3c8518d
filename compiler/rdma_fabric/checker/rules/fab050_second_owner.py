"""Another program writes the same settings.

What it checks
    Agents found on an observed node that own QoS or MTU too: an LLDP agent with DCBX (also one in the NIC's
    firmware, unless `pfc: {dcbx: ...}` asks for it), a NIC operator, a BlueField whose own system owns the
    card, a fabric manager, a vendor's RoCE macro.

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
from rdma_fabric.state import FIRMWARE_AGENT, Absent


def _check(node: NodeView) -> Iterator[Hit]:
    owners = node.state.system.owners
    if not node.observed or isinstance(owners, Absent):
        return
    meant = {FIRMWARE_AGENT.format(p.name) for p in node.wanted.ports if p.settings.qos.dcbx == "firmware"}
    others = [one for one in owners if one not in meant]
    if others:
        yield Hit(
            setting="owners",
            found=", ".join(others),
            wanted="nobody but fabric",
            message="{where}: another program writes the same settings",
            help="switch it off on this node, or leave these settings out of the intent",
        )


RULE = NodeRule("FAB050", "second-owner", Severity.WARNING, "0.1", "observed", _check)
