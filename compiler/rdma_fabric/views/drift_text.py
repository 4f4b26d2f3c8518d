"""Drift as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rdma_fabric.drift import NodeDrift
from rdma_fabric.settings import Deviation
from rdma_fabric.views.output import Output, count


def drift_text(rows: Sequence[NodeDrift], out: Output) -> str:
    """Every drifted or unreadable node; the numbers at the end."""
    lines: list[str] = []
    for row in rows:
        lines.extend(_node_text(row, out))
    drifted = sum(1 for row in rows if row.drifts)
    unread = sum(1 for row in rows if row.failure)
    skipped = sum(1 for row in rows if row.skipped)
    blind = sum(1 for row in rows if row.unknown)
    busy = sum(1 for row in rows if row.busy)
    counts = (
        (drifted, "drifted"),
        (unread, "not read"),
        (blind, "with unknown settings"),
        (busy, "in a run that is going on"),
        (skipped, "skipped"),
    )
    parts = [f"{number} {word}" for number, word in counts if number]
    lines.append(f"{count(len(rows), 'node')}: {', '.join(parts) if parts else 'clean'}")
    return "\n".join(lines)


def _node_text(row: NodeDrift, out: Output) -> list[str]:
    style = "error" if row.counts else "note"
    mark = "" if row.state == "active" else f" (state {row.state}: a note)"
    if row.busy:
        return [f"{out.paint(row.node, style)}: not judged: {row.busy}"]
    if row.failure:
        return [f"{out.paint(row.node, style)}: not read: {row.failure}{mark}"]
    lines = []
    for one in row.drifts:
        what = one.deviation
        reboot = "after a reboot " if one.layer == "stored" else ""
        values = f"{reboot}found {what.found}, wanted {what.wanted}"
        if one.layer == "pending":
            values += ": written, waits for a reset of its device"
        lines.append(f"{out.paint(row.node, style)} {what.setting}: {values}{mark}")
    lines.extend(f"{out.paint(row.node, style)} {effect}" for effect in row.effects)
    if row.unknown:
        names = ", ".join(one.setting for one in row.unknown[:4])
        more = f" and {len(row.unknown) - 4} more" if len(row.unknown) > 4 else ""
        lines.append(f"{out.paint(row.node, style)}: could not read {names}{more}")
    if out.verbose or row.unknown:
        lines.extend(f"{row.node}: {note}" for note in row.notes)
    return lines


def _deviation(one: Deviation) -> dict[str, Any]:
    return {"port": one.port, "setting": one.title, "key": one.key, "found": one.found, "wanted": one.wanted}


def drift_json(rows: Sequence[NodeDrift]) -> str:
    """Version 1."""
    nodes = [
        {
            "node": row.node,
            "state": row.state,
            "drift": [{"layer": one.layer, **_deviation(one.deviation)} for one in row.drifts],
            "unknown": [_deviation(one) for one in row.unknown],
            "notes": [*row.effects, *row.notes],
            "failure": row.failure,
            "skipped": row.skipped,
            "busy": row.busy,
        }
        for row in rows
    ]
    return json.dumps({"version": 1, "clean": not any(row.counts for row in rows), "nodes": nodes}, indent=1)
