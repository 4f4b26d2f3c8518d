"""An override selects no node and no port.

What it checks
    Every `where` of the intent's overrides matches something.

Why it breaks RDMA
    A misspelt role or a node that was renamed: the exception that was thought to be in force is not, and
    those nodes run with the fabric's default.
    Source: experience.

Wrong
    overrides:
      - {where: "role=spin", set: {ecn.400G.kmax: 3MB}}

Right
    overrides:
      - {where: "role=spine", set: {ecn.400G.kmax: 3MB}}

When to waive it
    Never: remove the override until there are nodes for it.
"""

from collections.abc import Iterator

from rdma_fabric.checker.fabric import Judged
from rdma_fabric.checker.scopes import FabricRule, Hit
from rdma_fabric.findings import Severity


def _check(judged: Judged) -> Iterator[Hit]:
    for override, position in judged.resolved.unused:
        yield Hit(
            setting="override",
            found=override.where,
            wanted="a selector that matches a node or port",
            message=f"the override for {override.where} selects nothing",
            help="correct its `where`, or remove it",
            position=position,
        )


RULE = FabricRule(
    "FAB048", "override-selects-nothing", Severity.WARNING, "0.1", "inventory", _check, plan=True
)
