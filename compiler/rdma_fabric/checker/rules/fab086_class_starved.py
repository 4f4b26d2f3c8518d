"""A class of RoCE or of congestion notifications has no share of the link.

What it checks
    Lossless classes and the CNP class (unless DCQCN is switched off): no bandwidth of 0% without a strict
    scheduler. A control class is judged by the rule on control traffic.

Why it breaks RDMA
    A queue without a share is served when all others are empty. RoCE then waits until it is paused, and CNPs
    come when the congestion that they tell of is over.
    Source: IEEE 802.1Qaz (a share of 0 gets no guarantee); DCQCN paper (SIGCOMM 2015), section 3.

Wrong
    cnp: {priority: 6, dscp: [48], bandwidth: 0%}

Right
    cnp: {priority: 6, dscp: [48], scheduler: strict}

When to waive it
    For a class that nothing uses yet.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity


def _check(intent: IntentView) -> Iterator[Hit]:
    wishes = intent.wishes
    reacts = wishes.dcqcn is None or wishes.dcqcn.enabled
    for name, one in wishes.classes.items():
        cnp = (one.kind or name) == "cnp" and reacts
        starved = one.bandwidth is not None and one.bandwidth.value == 0 and one.scheduler != "strict"
        if starved and (cnp or one.lossless):
            yield Hit(
                setting=f"share of class {name}",
                found="bandwidth 0%",
                wanted="a share above 0%, or scheduler: strict",
                message=f"{{where}}: {'CNPs' if cnp else 'lossless traffic'} (class {name}) can starve",
                help=f"give class {name} a share, or make it strict",
                path=("classes", name, "bandwidth"),
            )


RULE = IntentRule("FAB086", "class-starved", Severity.WARNING, "0.1", "intent", _check, plan=True)
