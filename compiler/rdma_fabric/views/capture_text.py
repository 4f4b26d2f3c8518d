"""What `fabric capture` wrote, as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rdma_fabric.views.output import count

if TYPE_CHECKING:
    from rdma_fabric.capture.record import Captured


def capture_text(name: str, one: Captured, paths: Sequence[str]) -> str:
    """Files, and what was not understood."""
    lines = [
        f"{name} ({one.platform}): {count(len(one.answers), 'answer')}",
        *(f"  {path}" for path in paths),
    ]
    lines += [f"not understood: {path}" for path in one.unknown[:20]]
    if len(one.unknown) > 20:
        lines.append(f"and {len(one.unknown) - 20} more in {paths[-1]}")
    if not one.same:
        lines.append("masking took something away that is needed to understand the answers")
    lines.append("secrets are masked; look at the files before you send them")
    return "\n".join(lines)


def capture_json(one: Captured, paths: Sequence[str]) -> str:
    """Version 1."""
    data = {
        "version": 1,
        "platform": one.platform,
        "files": list(paths),
        "not_understood": list(one.unknown),
        "masked_is_understood_alike": one.same,
    }
    return json.dumps(data, indent=1)
