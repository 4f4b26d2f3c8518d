"""A paused sender may go on where it is paused, or never.

What it checks
    The thresholds that an observed device has for each lossless priority: the sender may go on (xon) below
    where it is paused (xoff). Error: at or above it, or below zero, where it never may. Warning: where the
    point of pause moves with the shared pool, and nothing lies between it and the point of going on. Devices
    that do not show these numbers are not judged.

Why it breaks RDMA
    With the two points in the wrong order a queue is paused and released at once, over and over: pause frames
    eat the link, and PFC storms look like a fault of somebody else. One that is never released stands still
    until a watchdog drops it.
    Source: DCQCN paper (SIGCOMM 2015), section 4 (two MTU between the points); SONiC dynamic headroom design
    (resume at max(xon, T - xon_offset)); NVUE reference, QoS (xon-threshold counts down from xoff-threshold).

Wrong
    xoff 10000, xon 12000        # bytes: released while it is to be paused

Right
    xoff 10000, xon 8000

When to waive it
    When the vendor says that these numbers mean something else on this device.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.state import Buffer


def _check(node: NodeView) -> Iterator[Hit]:
    for one in node.buffers:
        if one.port in node.networks and (found := _order(one)):
            severity, text, wanted = found
            yield Hit(
                setting=f"{one.port}|resume point of priority {one.priority}",
                found=text + (f" ({one.name})" if one.name else ""),
                wanted=wanted,
                message=f"{{where}}: priority {one.priority} is released where it is paused, or never",
                help="give the device's own profile back (headroom: auto), or correct its xon and xoff",
                severity=severity,
            )


def _order(one: Buffer) -> tuple[Severity, str, str] | None:
    """(severity, what is found, what is wanted) of thresholds in the wrong order."""
    if not isinstance(one.resume_at, int):
        return None
    if isinstance(one.pause_at, int):
        resume = max(one.resume_at, one.pause_at - one.apart) if isinstance(one.apart, int) else one.resume_at
        if resume < 0:
            return Severity.ERROR, f"xoff {one.pause_at}, xon {resume}", "xon of 0 or more"
        if resume >= one.pause_at:
            return Severity.ERROR, f"xoff {one.pause_at}, xon {resume}", f"xon below {one.pause_at}"
    elif one.apart == 0 and one.resume_at == 0:
        return Severity.WARNING, "xon 0, and 0 below a moving xoff", "xon, or an offset of some frames"
    return None


RULE = NodeRule("FAB067", "resume-above-pause", Severity.ERROR, "0.1", "buffers", _check, ports=True)
