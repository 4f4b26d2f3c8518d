"""A device said something that an operator should know.

What it checks
    Remarks that belong to an observation: another user's session is open, a value waits for a reset, output
    was not understood.

Why it breaks RDMA
    It may not. But a change that somebody else holds open, or a setting that waits for a reset, explains
    what the next run will find.
    Source: the platform's page in docs/platforms.

Wrong
    a configuration session of another user that has been open for days

Right
    the session committed or aborted

When to waive it
    When the remark is known and harmless.
"""

from collections.abc import Iterator

from rdma_fabric.checker.scopes import Hit, NodeRule, NodeView
from rdma_fabric.findings import Severity


def _check(node: NodeView) -> Iterator[Hit]:
    for index, note in enumerate(node.notes, 1):
        yield Hit(
            setting=f"remark {index}" if len(node.notes) > 1 else "remark",
            found=note,
            wanted="",
            message=f"{{where}}: {note}",
            help="look at the device",
        )


RULE = NodeRule("FAB053", "observation-note", Severity.NOTE, "0.1", "observed", _check)
