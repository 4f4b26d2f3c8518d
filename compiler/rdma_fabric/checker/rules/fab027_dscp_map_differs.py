"""The two ends of a cable map a DSCP to different priorities.

What it checks
    Both ends' priorities of every code point that a class of the intent names, or that is lossless at one
    end. CNPs may have different priorities on hosts and switches as long as neither is lossless.

Why it breaks RDMA
    PFC pauses a priority. When one end counts DSCP 26 to priority 3 and the other to 4, the pause stops the
    wrong traffic and the right one is dropped.
    Source: SONiC mgmt issue 17298; device defaults differ (24 and 26 are best effort in one
    default map, priority 3 in another).

Wrong
    overrides:
      - {where: "role=spine", set: {classes.roce.dscp: [24]}}

Right
    classes:
      roce: {priority: 3, dscp: [24, 26], lossless: true}

When to waive it
    For a cable whose ends are moved to a new map one after the other, with drained hosts.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import dscp_trusted, lossless_priorities, named_dscps
from rdma_fabric.checker.scopes import Hit, LinkFacts, LinkRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.resolve import class_of_kind
from rdma_fabric.settings import dscp_map, ranges
from rdma_fabric.state import known


def _check(a: PortView, b: PortView, facts: LinkFacts) -> Iterator[Hit]:
    if not (dscp_trusted(a.assumed.qos) and dscp_trusted(b.assumed.qos)):
        return
    one = known(a.assumed.qos.dscp_to_priority, "DSCP map")
    other = known(b.assumed.qos.dscp_to_priority, "DSCP map")
    wrong = [dscp for dscp in range(64) if one[dscp] != other[dscp] and _matters(dscp, a, b, one, other)]
    if wrong:
        yield Hit(
            setting="qos.dscp_to_priority",
            found=dscp_map(one),
            wanted=dscp_map(other),
            message=f"{{where}}: DSCP {ranges(wrong)} has different priorities at the two ends of the cable",
            help="give both ends the same DSCP map",
            rank=20,
        )


def _matters(dscp: int, a: PortView, b: PortView, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    lossless = {*lossless_priorities(a.wishes), *lossless_priorities(b.wishes)}
    if one[dscp] in lossless or other[dscp] in lossless:
        return True
    if a.is_host != b.is_host and any(_is_cnp(dscp, view) for view in (a, b)):
        return False
    return any(dscp in named_dscps(item) for view in (a, b) for item in view.wishes.classes.values())


def _is_cnp(dscp: int, view: PortView) -> bool:
    cnp = class_of_kind(view.wishes, "cnp")
    return cnp is not None and dscp in cnp.dscp


RULE = LinkRule("FAB027", "dscp-map-differs", Severity.ERROR, "0.1", "qos", _check)
