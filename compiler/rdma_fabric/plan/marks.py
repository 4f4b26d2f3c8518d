"""A working host marks its packets otherwise only where the switches of the plan take the new mark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rdma_fabric.inventory.ranges import collapse
from rdma_fabric.state import Difference

if TYPE_CHECKING:
    from rdma_fabric.plan.changes import PlanRow
    from rdma_fabric.plan.disturb import Harm

_MARK: Final = re.compile(
    r"ports\..+\.marking\.(rdma_cm_tos|traffic_class)"
    r"|system\.environment\.(NCCL_IB_TC|NCCL_IB_FIFO_TC|UCX_IB_TRAFFIC_CLASS)"
)
_CLASSIFICATION: Final = re.compile(r"ports\..+\.qos\.(trust|dscp_to_priority)")


def hold_marks(rows: Mapping[str, PlanRow], harm: Harm) -> dict[str, PlanRow]:
    """The rows, with working hosts refused that would use a DSCP which a refused or unread switch lacks.

    Such a step disturbs nothing by itself, but every connection made after it would be lossy on that node.
    """
    nodes = harm.inventory.nodes
    behind = [name for name, row in rows.items() if not nodes[name].is_host and _stays(row)]
    if not behind:
        return dict(rows)
    who = collapse(behind) if len(behind) < 9 else f"{len(behind)} nodes"
    reason = (
        f"packets would be marked otherwise, and {who} would not take the new marks; "
        "change the DSCP maps there first, or in the same run"
    )
    return {
        name: replace(row, status="refused", reason=reason) if _marks(row) and not harm.idle(name) else row
        for name, row in rows.items()
    }


def _stays(row: PlanRow) -> bool:
    """True when the row's DSCP map is not as wanted, and the plan does not change it."""
    if row.change is None:
        return False
    left = row.change.blocked if row.status == "change" else (*row.change.differences, *row.change.blocked)
    return row.status in ("change", "refused", "unknown") and _any(_CLASSIFICATION, left)


def _marks(row: PlanRow) -> bool:
    """True when the row would make its node mark packets otherwise."""
    return row.status == "change" and row.change is not None and _any(_MARK, row.change.differences)


def _any(pattern: re.Pattern[str], found: Iterable[Difference]) -> bool:
    return any(pattern.fullmatch(one.path) for one in found)
