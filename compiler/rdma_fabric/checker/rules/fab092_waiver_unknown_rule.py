"""A waiver names a rule that does not exist.

What it checks
    `rule` of every waiver is a code or a name that `fabric explain` lists.

Why it breaks RDMA
    The waiver does nothing: the fault that it was meant to accept still blocks, or worse, nobody notices
    that it was never accepted.
    Source: experience.

Wrong
    waivers:
      - {rule: mtu-below-rmda, node: leaf17, until: 2099-01-31, reason: "optics swap"}

Right
    waivers:
      - {rule: mtu-below-rdma, node: leaf17, until: 2099-01-31, reason: "optics swap"}

When to waive it
    Not possible.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, WaiverRule, WaiverView
from rdma_fabric.findings import Severity


def _check(view: WaiverView) -> Iterator[Hit]:
    if not view.exists:
        yield Hit(
            setting="waiver",
            found=view.waiver.rule,
            wanted="a code or name of a rule",
            message=f"no rule {view.waiver.rule}",
            help=f"did you mean {view.near}?" if view.near else "`fabric explain` lists the rules",
        )


RULE = WaiverRule("FAB092", "waiver-unknown-rule", Severity.ERROR, "0.1", "waivers", _check, plan=True)
