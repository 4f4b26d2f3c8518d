"""A queue does not mark although the intent gives it an ECN ramp.

What it checks
    On observed ports: every priority whose realized intent has a ramp has one on the device.

Why it breaks RDMA
    Without marks DCQCN never hears of the congestion, and PFC is all that is left. One queue without marks
    is enough: its flows keep their rate and take the bandwidth of those that slow down.
    Source: DCQCN paper (SIGCOMM 2015), sections 2 and 3.

Wrong
    queue 3 of one uplink without an ECN line

Right
    `fabric apply`, so that every queue of the class has the intent's ramp

When to waive it
    While marking is switched off on one port on purpose.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import group_of
from rdma_fabric.state import Ecn


def _check(port: PortView) -> Iterator[Hit]:
    if not port.observed:
        return
    for priority, (have, want) in enumerate(
        zip(port.state.qos.classes, port.wanted.qos.classes, strict=True)
    ):
        if have.ecn is None and isinstance(want.ecn, Ecn):
            setting = f"qos.classes.{priority}.ecn"
            yield Hit(
                setting=setting,
                found="none",
                wanted=group_of(setting).show(port.wanted),
                message=f"{{where}}: priority {priority} does not mark packets",
                help="run `fabric apply` for this node",
                rank=10,
            )


RULE = PortRule("FAB035", "ecn-not-marking", Severity.ERROR, "0.1", "observed", _check)
