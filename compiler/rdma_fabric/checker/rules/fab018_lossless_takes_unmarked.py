"""The lossless class takes packets that nobody marked.

What it checks
    No lossless class holds DSCP 0, and none holds `rest`. Where ports trust 802.1p, none holds priority 0,
    which untagged packets get.

Why it breaks RDMA
    DSCP 0 is what every application sends that does not ask for anything: backups, image pulls, ssh. In a
    lossless class they pause RoCE traffic and are paused by it. And RoCE that is marked with ToS 0 is not
    told apart: a switch with default maps puts it into priority 0, and the lossless priority stays empty.
    Source: RFC 2474, section 4.1 (the default per-hop behaviour is code point 000000).

Wrong
    classes:
      roce:    {priority: 3, dscp: [0], lossless: true}
      default: {priority: 1, dscp: rest}

Right
    classes:
      roce:    {priority: 3, dscp: [26], lossless: true}
      default: {priority: 0, dscp: rest}

When to waive it
    On a network that carries nothing but RoCE, when every node really is set up so.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import REST, TrafficClass


def _check(intent: IntentView) -> Iterator[Hit]:
    for name, one in intent.wishes.classes.items():
        if one.lossless and {0, REST} & set(one.dscp):
            yield _hit(
                name,
                one,
                "dscp",
                "DSCP 0 (ToS 0)" if 0 in one.dscp else "dscp: rest",
                "a DSCP that only RoCE traffic carries, such as 26",
                f"give class {name} a DSCP of its own (24 and 26 are usual), and rest to a lossy class",
            )
        elif one.lossless and intent.wishes.trust == "pcp" and 0 in (one.priority, *one.pcp):
            yield _hit(
                name,
                one,
                "pcp" if 0 in one.pcp else "priority",
                "802.1p priority 0",
                "a priority that only RoCE traffic carries, such as 3",
                f"give class {name} another priority, and priority 0 to a lossy class",
            )


def _hit(name: str, one: TrafficClass, key: str, found: str, wanted: str, advice: str) -> Hit:
    return Hit(
        setting=f"{key.upper() if key != 'priority' else key} of the lossless class",
        found=found,
        wanted=wanted,
        message=f"{{where}}: lossless class {name} takes every packet that nobody marked",
        reason=f"priority {one.priority} is lossless, but RoCE traffic is not marked for it",
        help=advice,
        path=("classes", name, key),
        explains=("marking.*",),
    )


RULE = IntentRule("FAB018", "lossless-takes-unmarked", Severity.ERROR, "0.1", "intent", _check, plan=True)
