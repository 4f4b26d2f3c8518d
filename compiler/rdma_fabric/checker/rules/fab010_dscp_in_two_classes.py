"""One DSCP belongs to two classes.

What it checks
    Every DSCP of the intent's classes, also `rest`, occurs in one class only.

Why it breaks RDMA
    A device maps a code point to exactly one priority. With two classes the order of lines decides which,
    and platforms order them differently: RoCE is lossless on one switch and dropped on the next.
    Source: RFC 2474, section 3 (a DS code point selects one per-hop behaviour).

Wrong
    classes:
      roce:    {priority: 3, dscp: [26], lossless: true}
      storage: {priority: 4, dscp: ["24-31"], lossless: true}

Right
    classes:
      roce:    {priority: 3, dscp: [26], lossless: true}
      storage: {priority: 4, dscp: [24, 25, "27-31"], lossless: true}

When to waive it
    Never: write the code point in the one class that is meant.
"""

from collections.abc import Iterator
from itertools import combinations

from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import REST
from rdma_fabric.settings import ranges


def _check(intent: IntentView) -> Iterator[Hit]:
    classes = intent.wishes.classes
    for (one, first), (other, second) in combinations(classes.items(), 2):
        shared = set(first.dscp) & set(second.dscp)
        if not shared:
            continue
        words = [f"DSCP {ranges(shared - {REST})}"] if shared - {REST} else []
        words += ["rest"] if REST in shared else []
        yield Hit(
            setting="DSCP of classes",
            found=f"{' and '.join(words)} in {one} and {other}",
            wanted="each DSCP in one class",
            message=f"{{where}}: {' and '.join(words)} cannot be in two classes",
            help=f"remove it from {one} or from {other}",
            path=("classes", other, "dscp"),
            explains=("qos.dscp_to_priority", "marking.*"),
        )


RULE = IntentRule("FAB010", "dscp-in-two-classes", Severity.ERROR, "0.1", "intent", _check, plan=True)
