"""PFC is on for a priority that carries no lossless class.

What it checks
    The PFC priorities of every port against the priorities of the intent's lossless classes.

Why it breaks RDMA
    A paused lossy class can stop routing, storage or CNPs, and every priority with PFC takes headroom from
    the shared buffer: the class that needs it gets less.
    Source: IEEE 802.1Qbb; SONiC headroom design (the pool holds the headroom of all ports and priorities).

Wrong
    priority-flow-control on for priorities 3 and 5, with one lossless class on priority 3

Right
    priority-flow-control on for priority 3 only

When to waive it
    While a class is moved to another priority and both must be lossless for a time.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import lossless_priorities, paused
from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import group_of, ranges


def _check(port: PortView) -> Iterator[Hit]:
    if not port.wishes.classes:
        return
    lossless = lossless_priorities(port.wishes)
    extra = paused(port.state.qos) - set(lossless)
    if extra:
        yield Hit(
            setting="qos.pfc",
            found=group_of("qos.pfc").show(port.state),
            wanted=ranges(lossless),
            message=f"{{where}}: PFC on priority {ranges(extra)}, which carries no lossless class",
            help=f"switch PFC off for priority {ranges(extra)}, or make its class lossless in the intent",
            rank=10,
        )


RULE = PortRule("FAB029", "pfc-without-lossless", Severity.ERROR, "0.1", "pfc", _check)
