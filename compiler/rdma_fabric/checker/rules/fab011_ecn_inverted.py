"""The ECN minimum lies above the maximum.

What it checks
    kmin and kmax of every ramp of the intent (also per class and per colour). Equal values are legal: they
    mean step marking.

Why it breaks RDMA
    An inverted ramp is refused by some devices and silently repaired by others, so that queues mark at
    different depths; on hardware that takes it, marking starts only at the larger value and PFC pauses
    the senders long before DCQCN slows them.
    Source: DCQCN paper (SIGCOMM 2015), section 3.1; SONiC utilities pull 579.

Wrong
    ecn: {400G: {kmin: 1500KB, kmax: 150KB}}

Right
    ecn: {400G: {kmin: 150KB, kmax: 1500KB, pmax: 100%}}

When to waive it
    Never.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import ecn_tables
from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity
from rdma_fabric.intent.quantities import Threshold


def _check(intent: IntentView) -> Iterator[Hit]:
    for path, table in ecn_tables(intent.wishes):
        for speed, row in table.root.items():
            yield from _ramp(row.kmin, row.kmax, (*path, speed), speed)
            for colour, ramp in row.colours.items():
                yield from _ramp(ramp.kmin, ramp.kmax, (*path, speed, "colours", colour), f"{speed} {colour}")


def _ramp(kmin: Threshold | None, kmax: Threshold | None, path: tuple[str, ...], what: str) -> Iterator[Hit]:
    if kmin is None or kmax is None or kmin.unit != kmax.unit or kmin.value <= kmax.value:
        return
    yield Hit(
        setting="ECN minimum / maximum",
        found=f"min {kmin}, max {kmax}",
        wanted="min <= max",
        message=f"{{where}}: the ECN ramp of {what} is inverted",
        help=f"swap them: kmin {kmax}, kmax {kmin}",
        path=path,
        explains=("qos.classes.*.ecn",),
    )


RULE = IntentRule("FAB011", "ecn-inverted", Severity.ERROR, "0.1", "intent", _check, plan=True)
