"""An ECN threshold lies beyond what the switch's buffer can hold.

What it checks
    Thresholds in bytes of every switch port against the ASIC's buffer (a slice of it where the chip is
    sliced). Error: the minimum is not below it, so that nothing is ever marked. Warning: the maximum is not,
    so that the ramp never ends. Note: the minimum is above the worst-case bound (B - n*m*h) / (n*m) of n
    ports and m lossless priorities with headroom h: pauses may come before the first mark, whatever the
    device's alpha.

Why it breaks RDMA
    DCQCN hears of a congestion only by marks. A queue that cannot grow to the threshold pauses its senders
    or drops instead.
    Source: DCQCN paper (SIGCOMM 2015), section 4; a lone queue reaches alpha*B/(1+alpha) < B (Juniper,
    QFX5000 packet buffer architecture).

Wrong
    ecn: {100G: {kmin: 12MB, kmax: 24MB}}      # on a Tomahawk with 16 MB in 4 slices

Right
    ecn: {100G: {kmin: 150KB, kmax: 1500KB}}

When to waive it
    For a switch that takes packets of this queue into an external buffer which the table does not know.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._buffers import least_headroom, metres, slice_bytes
from rdma_fabric.checker.rules._common import lossless_priorities
from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import amount
from rdma_fabric.state import Amount, Ecn, PortState


def _check(node: NodeView) -> Iterator[Hit]:
    asic = node.hw.asic
    size = slice_bytes(asic) if asic else 0
    if node.is_host or asic is None or not size:
        return
    worst = _worst(node)
    for port in node.state.ports:
        for priority, one in enumerate(port.settings.qos.classes):
            if isinstance(one.ecn, Ecn) and one.ecn.kmin.unit == one.ecn.kmax.unit == "bytes":
                yield from _ramp(port, priority, one.ecn, size, worst, asic.name)


def _worst(node: NodeView) -> int:
    """Worst-case bound of the minimum for an endless alpha; 0 where it cannot be told."""
    asic = node.hw.asic
    count = sum(len(lossless_priorities(wishes)) for wishes in node.port_wishes.values())
    if asic is None or not count:
        return 0
    headroom = sum(
        len(lossless_priorities(node.port_wishes[port.name])) * least_headroom(port.speed_gbps, metres(port))
        for port in node.hw.ports
    )
    return max(0, (asic.buffer_bytes - headroom) // count)


def _ramp(port: PortState, priority: int, ramp: Ecn, size: int, worst: int, asic: str) -> Iterator[Hit]:
    kmin, kmax = ramp.kmin.value, ramp.kmax.value
    setting = f"{port.name}|qos.classes.{priority}.ecn"
    if kmin >= size:
        yield _hit(setting, f"minimum {amount(ramp.kmin)}", size, asic, Severity.ERROR, "can mark nothing")
    elif kmax >= size:
        told = "never marks all packets"
        yield _hit(setting, f"maximum {amount(ramp.kmax)}", size, asic, Severity.WARNING, told)
    elif worst and kmin >= worst:
        told = "may pause before it marks when all ports are full"
        yield _hit(setting, f"minimum {amount(ramp.kmin)}", worst, asic, Severity.NOTE, told)


def _hit(setting: str, found: str, bound: int, asic: str, severity: Severity, told: str) -> Hit:
    return Hit(
        setting=setting,
        found=found,
        wanted=f"below {amount(Amount(bound))} ({asic})",
        message=f"{{where}}: the queue {told}",
        help="lower the thresholds, for these switches by an override",
        severity=severity,
        rank=5 if severity > Severity.NOTE else -1,
    )


RULE = NodeRule(
    "FAB065", "ecn-beyond-buffer", Severity.ERROR, "0.1", "buffers", _check, ports=True, plan=True
)
