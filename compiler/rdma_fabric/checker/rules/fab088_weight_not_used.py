"""A class has a weight that nothing uses.

What it checks
    Classes with a `weight` beside a `bandwidth`, which counts alone, or beside `scheduler: strict`. The two
    may come from different places: a network's weight over the fabric's bandwidth.

Why it breaks RDMA
    The class keeps the share that it had, while its weight says another one.
    Source: IEEE 802.1Qaz (a share of transmission selection is a percentage); experience.

Wrong
    roce: {priority: 3, dscp: [26], bandwidth: 50%, weight: 80}

Right
    roce: {priority: 3, dscp: [26], bandwidth: 80%}

When to waive it
    Never: remove the one that is not meant.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity


def _check(intent: IntentView) -> Iterator[Hit]:
    for name, one in intent.wishes.classes.items():
        strict = one.scheduler == "strict"
        if one.weight is None or (one.bandwidth is None and not strict):
            continue
        wins = "scheduler: strict" if strict else f"bandwidth: {one.bandwidth}"
        yield Hit(
            setting=f"weight of class {name}",
            found=f"weight: {one.weight} beside {wins}",
            wanted="one of the two",
            message=f"{{where}}: class {name} has a weight, and {wins} counts",
            help=f"remove the weight of class {name}, or the other one where it is written",
            path=("classes", name, "weight"),
        )


RULE = IntentRule(
    "FAB088",
    "weight-not-used",
    Severity.WARNING,
    "0.1",
    "intent",
    _check,
    plan=True,
    transports=("rocev2", "infiniband"),
)
