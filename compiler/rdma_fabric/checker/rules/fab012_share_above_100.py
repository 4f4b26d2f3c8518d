"""The classes' bandwidth adds up to more than the link.

What it checks
    The sum of `bandwidth` over all classes of one port. Less than 100% is legal; strict classes and
    relative weights do not count. An InfiniBand network has the classes with a service level only.

Why it breaks RDMA
    A scheduler cannot give more than the link: devices refuse such a set, or scale it, each in its own way,
    and the lossless class gets a share that nobody planned.
    Source: IEEE 802.1Q, clause 37 (enhanced transmission selection: all groups together have 100 percent).

Wrong
    classes:
      roce:    {priority: 3, dscp: [26], lossless: true, bandwidth: 60%}
      default: {priority: 0, dscp: rest, bandwidth: 50%}

Right
    classes:
      roce:    {priority: 3, dscp: [26], lossless: true, bandwidth: 60%}
      default: {priority: 0, dscp: rest, bandwidth: 40%}

When to waive it
    Never.
"""

from collections.abc import Iterator, Mapping

from rdma_fabric.checker.scopes import Hit, IntentRule, IntentView
from rdma_fabric.findings import Severity
from rdma_fabric.intent.models import TrafficClass, Wishes
from rdma_fabric.intent.quantities import Percent
from rdma_fabric.inventory.subnets import ib_classes


def _classes(wishes: Wishes) -> Mapping[str, TrafficClass]:
    return ib_classes(wishes) if wishes.rdma.transport == "infiniband" else wishes.classes


def _check(intent: IntentView) -> Iterator[Hit]:
    shares = {
        name: one.bandwidth
        for name, one in _classes(intent.wishes).items()
        if one.bandwidth is not None and one.scheduler != "strict"
    }
    total = sum(share.value for share in shares.values())
    if total <= 100:
        return
    parts = " + ".join(f"{name} {share}" for name, share in shares.items())
    yield Hit(
        setting="bandwidth of classes",
        found=f"{parts} = {total:g}%",
        wanted="at most 100%",
        message="{where}: the classes ask for more than the link has",
        help=f"take {Percent(total - 100)} away from the classes",
        path=("classes", list(shares)[-1], "bandwidth"),
        explains=("qos.classes.*.share",),
    )


RULE = IntentRule(
    "FAB012",
    "share-above-100",
    Severity.ERROR,
    "0.1",
    "intent",
    _check,
    plan=True,
    transports=("rocev2", "infiniband"),
)
