"""Global pause is on where PFC should work.

What it checks
    Ports with a lossless class do not have 802.3x pause frames switched on.

Why it breaks RDMA
    Devices have one or the other: with global pause a port stops as a whole, CNPs and routing included,
    or it ignores PFC frames without a message.
    Source: NVIDIA "RDMA/RoCE Solutions" guide (global pause and PFC exclude each other); ethtool -a.

Wrong
    ethtool -A eth2 rx on tx on

Right
    ethtool -A eth2 rx off tx off, and PFC for the lossless priority

When to waive it
    For a port that carries no lossless class.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import lossless_priorities
from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.state import UNKNOWN, known


def _check(port: PortView) -> Iterator[Hit]:
    if not lossless_priorities(port.wishes):
        return
    if port.state.qos.global_pause is UNKNOWN:
        known(port.state.qos.global_pause, "global pause")
    if port.state.qos.global_pause is True:
        yield Hit(
            setting="qos.global_pause",
            found="on",
            wanted="off",
            message="{where}: global pause is on, so the port stops as a whole",
            help="switch pause frames off on this port; PFC does the work for the lossless class",
            rank=20,
        )


RULE = PortRule("FAB037", "global-pause", Severity.ERROR, "0.1", "pfc", _check)
