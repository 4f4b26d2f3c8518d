"""A setting on the device is not what the intent says.

What it checks
    Every setting that the intent owns, on observed nodes (`check --live`, `check --observed`): the observed
    value against what a read-back of this platform would show after an apply.

Why it breaks RDMA
    Agreement between neighbours is not enough: two ends may agree on the wrong value. A deviation that no
    sharper rule explains is still a node that does not tell the same story as the rest.
    Source: experience; NVIDIA/nccl issue 1957 (nodes that agree with each other and not with what was meant).

Wrong
    An interface whose priority 3 queue was given another weight by hand.

Right
    `fabric apply`, or the new value in the intent.

When to waive it
    While a change on one node is tried out on purpose.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.settings import group_of
from rdma_fabric.state import Difference, differences


def _check(port: PortView) -> Iterator[Hit]:
    if not port.observed:
        return
    told: set[str] = set()
    for one in differences(port.wanted, port.state, "s"):
        group = group_of(one.path.removeprefix("s."))
        if one.unknown or group.key in told or _same_dscp(one):
            continue
        told.add(group.key)
        yield Hit(
            setting=group.key,
            found=group.show(port.state),
            wanted=group.show(port.wanted),
            message=f"{{where}}: {group.title} differs from the intent",
            help="run `fabric apply` for this node, or change the intent if the device is right",
        )


def _same_dscp(one: Difference) -> bool:
    """A ToS byte is a DSCP and two ECN bits, which the NIC sets itself: 104 and 106 are both DSCP 26."""
    if not one.path.endswith(("rdma_cm_tos", "traffic_class")):
        return False
    wanted, found = one.wanted, one.found
    return isinstance(wanted, int) and isinstance(found, int) and wanted >> 2 == found >> 2


RULE = PortRule("FAB030", "differs-from-intent", Severity.ERROR, "0.1", "observed", _check)
