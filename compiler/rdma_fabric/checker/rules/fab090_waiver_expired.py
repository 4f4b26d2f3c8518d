"""A waiver has expired.

What it checks
    The date of every waiver of the intent.

Why it breaks RDMA
    The fault was accepted for a time. After it the fault counts again, and this finding says that somebody
    should decide anew, even if the cause is gone.
    Source: experience.

Wrong
    waivers:
      - {rule: FAB021, node: leaf17, until: 2020-01-31, reason: "optics swap, ticket 4711"}

Right
    the cause mended and the waiver removed

When to waive it
    Not possible.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, WaiverRule, WaiverView
from rdma_fabric.findings import Severity


def _check(view: WaiverView) -> Iterator[Hit]:
    waiver = view.waiver
    if view.exists and view.expired:
        yield Hit(
            setting="waiver",
            found=f"until {waiver.until}",
            wanted="a date in the future, or no waiver",
            message=f"the waiver of {waiver.rule} for {waiver.node or waiver.link} expired on {waiver.until}",
            help="mend the cause and remove the waiver, or set a new date with a reason",
        )


RULE = WaiverRule("FAB090", "waiver-expired", Severity.ERROR, "0.1", "waivers", _check, plan=True)
