"""Two classes on one priority want different things.

What it checks
    Classes with the same priority agree on `lossless` and on their ECN ramps.

Why it breaks RDMA
    PFC and marking work per priority, not per class: with one lossless and one lossy class on a priority
    the lossy one is paused too, and it fills the buffer that was meant for the other.
    Source: IEEE 802.1Qbb (PFC has one pause timer for each of eight priorities).

Wrong
    classes:
      roce: {priority: 3, dscp: [26], lossless: true}
      bulk: {priority: 3, dscp: [10]}

Right
    classes:
      roce: {priority: 3, dscp: [26], lossless: true}
      bulk: {priority: 1, dscp: [10]}

When to waive it
    Never: give one of them another priority.
"""

from collections.abc import Iterator
from itertools import combinations

from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import TrafficClass


def _check(intent: IntentView) -> Iterator[Hit]:
    cnp_told = intent.wishes.dcqcn is None or intent.wishes.dcqcn.enabled
    for (one, first), (other, second) in combinations(intent.wishes.classes.items(), 2):
        if first.priority != second.priority:
            continue
        kinds = {first.kind or one, second.kind or other}
        if "control" in kinds or (cnp_told and "cnp" in kinds):
            # Rules of their own tell these, with their own reasons.
            continue
        if first.lossless != second.lossless:
            yield _hit(first, one, other, "lossless", _word(first), _word(second))
        elif first.ecn is not None and second.ecn is not None and first.ecn != second.ecn:
            yield _hit(first, one, other, "ecn", "one ramp", "another ramp")


def _word(one: TrafficClass) -> str:
    return "lossless" if one.lossless else "lossy"


def _hit(first: TrafficClass, one: str, other: str, key: str, found: str, wanted: str) -> Hit:
    return Hit(
        setting=f"priority {first.priority}",
        found=f"{one} {found}, {other} {wanted}",
        wanted="the same for both classes",
        message=f"{{where}}: classes {one} and {other} share priority {first.priority} but differ in {key}",
        help=f"give {other} another priority",
        path=("classes", other, "priority"),
    )


RULE = IntentRule("FAB016", "priority-in-conflict", Severity.ERROR, "0.1", "intent", _check, plan=True)
