"""Congestion notifications are in a class that can be paused.

What it checks
    The CNP class is not lossless and does not share the priority of a lossless class, unless DCQCN is
    switched off.

Why it breaks RDMA
    A CNP tells the sender to slow down. When it waits behind a pause, the sender goes on at full speed just
    when the network asks it to stop, and the pause spreads towards all senders.
    Source: DCQCN paper (SIGCOMM 2015), section 3 (CNPs are sent with high priority).

Wrong
    classes:
      roce: {priority: 3, dscp: [26], lossless: true}
      cnp:  {priority: 3, dscp: [48]}

Right
    classes:
      roce: {priority: 3, dscp: [26], lossless: true}
      cnp:  {priority: 6, dscp: [48], scheduler: strict}

When to waive it
    Never on a fabric that uses DCQCN; write dcqcn: false otherwise.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import lossless_priorities
from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity


def _check(intent: IntentView) -> Iterator[Hit]:
    wishes = intent.wishes
    if wishes.dcqcn is not None and not wishes.dcqcn.enabled:
        return
    for name, one in wishes.classes.items():
        if (one.kind or name) != "cnp" or one.priority not in lossless_priorities(wishes):
            continue
        shared = [other for other, item in wishes.classes.items() if item.lossless and other != name]
        found = "lossless" if one.lossless else f"priority {one.priority}, as the lossless {shared[0]}"
        yield Hit(
            setting="CNP class",
            found=found,
            wanted="a lossy priority of its own",
            message=f"{{where}}: CNPs (class {name}) can be paused",
            help=f"remove lossless from {name}" if one.lossless else f"give {name} another priority",
            path=("classes", name, "lossless" if one.lossless else "priority"),
            explains=("qos.pfc", "qos.dscp_to_priority", "marking.cnp_*"),
        )


RULE = IntentRule("FAB014", "cnp-lossless", Severity.ERROR, "0.1", "intent", _check, plan=True)
