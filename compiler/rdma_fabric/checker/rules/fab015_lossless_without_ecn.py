"""DCQCN is on, but a lossless class has no ECN marking.

What it checks
    While `dcqcn` is on, every lossless class has an ECN ramp (its own or the default table's) for every
    port speed of the switches that it reaches. A class that says `ecn: false` beside another lossless
    class that marks is a note.

Why it breaks RDMA
    DCQCN reacts to ECN marks and to nothing else. Without marks no CNP is sent, and PFC is the only thing
    that slows a sender: head-of-line blocking and victim flows.
    Source: DCQCN paper (SIGCOMM 2015), sections 2 and 3.

Wrong
    ecn: {100G: {kmin: 150KB, kmax: 1500KB}}      # and the leaves have 400G ports
    dcqcn: {enabled: true}

Right
    ecn:
      100G: {kmin: 150KB, kmax: 1500KB}
      400G: {kmin: 600KB, kmax: 2400KB}
    dcqcn: {enabled: true}

When to waive it
    For a lossless class whose traffic does not use DCQCN (storage over FCoE).
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import TrafficClass, Wishes


def _check(intent: IntentView) -> Iterator[Hit]:
    wishes = intent.wishes
    if wishes.dcqcn is None or not wishes.dcqcn.enabled or not intent.speeds_gbps:
        return
    lossless = {name: one for name, one in wishes.classes.items() if one.lossless}
    gaps = {name: _gap(wishes, one, intent.speeds_gbps) for name, one in lossless.items()}
    marks = [name for name, gap in gaps.items() if not gap]
    for name, gap in gaps.items():
        if gap:
            own = lossless[name].ecn is not None
            yield Hit(
                setting="ECN of lossless classes",
                found=gap,
                wanted="a ramp for every port speed",
                message=f"{{where}}: DCQCN is on, but lossless class {name} does not mark on some ports",
                help="add the missing ramp under ecn, or write dcqcn: false if nothing is to react to marks",
                severity=Severity.NOTE if gap == "off" and marks else None,
                path=("classes", name, "ecn") if own else ("ecn",) if wishes.ecn else ("classes", name),
            )


def _gap(wishes: Wishes, one: TrafficClass, speeds: tuple[int, ...]) -> str:
    tables = [table for table in (one.ecn, wishes.ecn) if table is not None]
    if not tables:
        return "no ecn at all"
    # What a class's own table leaves out is the default table's.
    rows = {speed: next(filter(None, (table.at(speed) for table in tables)), None) for speed in speeds}
    missing = [f"{speed}G" for speed, row in rows.items() if row is None]
    if missing:
        return f"nothing for {', '.join(missing)}"
    return "off" if any(row is not None and row.mode == "off" for row in rows.values()) else ""


RULE = IntentRule("FAB015", "lossless-without-ecn", Severity.WARNING, "0.1", "intent", _check, plan=True)
