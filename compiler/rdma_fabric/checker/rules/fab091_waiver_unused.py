"""A waiver covers nothing.

What it checks
    Every waiver in force accepts at least one finding.

Why it breaks RDMA
    It does not, yet: but a waiver that outlives its cause will silently accept the next fault of that kind
    at that place.
    Source: experience.

Wrong
    waivers:
      - {rule: FAB021, node: leaf17, until: 2099-01-31, reason: "optics swap, done in March"}

Right
    no waiver once the cause is gone

When to waive it
    Not possible.
"""

from collections.abc import Iterator

from rdma_fabric.checker.rules._common import some
from rdma_fabric.checker.scopes import Hit, WaiverRule, WaiverView
from rdma_fabric.findings import Severity


def _check(view: WaiverView) -> Iterator[Hit]:
    waiver = view.waiver
    place = waiver.node or waiver.link or waiver.network
    if view.exists and not view.expired and not view.covered:
        yield Hit(
            setting="waiver",
            found="no finding",
            wanted="a finding to accept",
            message=f"the waiver of {waiver.rule} for {place} covers nothing",
            help=f"its findings there are on {some(view.others)}"
            if view.others
            else "check its rule and place; remove it when the cause is gone",
        )


RULE = WaiverRule("FAB091", "waiver-unused", Severity.NOTE, "0.1", "waivers", _check, plan=True)
