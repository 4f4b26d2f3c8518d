"""Somebody else than us may change PFC by DCBX.

What it checks
    Where the intent says `dcbx: none` (the default): neither the NIC's firmware nor a DCBX agent owns the
    port's PFC.

Why it breaks RDMA
    The firmware or an agent takes the peer's proposal at the next link up: what was written on the host
    does not hold, and after a flap the port has other lossless priorities than before.
    Source: Linux commit 0eca995f3ede (who owns a NIC's DCBX, firmware or host); netdev message 125575.

Wrong
    DCBX mode: firmware controlled

Right
    pfc: {dcbx: none}, which gives PFC to the host's own settings

When to waive it
    Where a DCBX agent is meant to own PFC; better write pfc: {dcbx: ieee} for those ports.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.state import known


def _check(port: PortView) -> Iterator[Hit]:
    if port.wanted.qos.dcbx != "none":
        return
    found = known(port.state.qos.dcbx, "DCBX mode")
    if found == "none":
        return
    yield Hit(
        setting="qos.dcbx",
        found=found,
        wanted="host (nobody but its own settings)" if port.is_host else "none",
        message=f"{{where}}: {'the NIC firmware' if found == 'firmware' else 'a DCBX agent'} owns PFC",
        reason="what is written on this port will not hold",
        help="run `fabric apply` for this node; it takes PFC back",
        rank=20,
    )


RULE = PortRule("FAB036", "dcbx-owner", Severity.ERROR, "0.1", "pfc", _check)
