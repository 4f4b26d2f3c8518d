"""One line per change and one per scan; JSON as one line per scan, for log collectors."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rdma_fabric.views.output import Output, count

if TYPE_CHECKING:
    from rdma_fabric.watch.history import Event
    from rdma_fabric.watch.rounds import Round


def round_text(found: Round, out: Output) -> str:
    """What changed since the scan before, then how the fabric is."""
    lines = [_event(one, out) for one in found.events]
    if found.inputs:
        lines.append(out.paint(f"inputs do not load, the last good ones are used: {found.inputs}", "warning"))
    words = Counter(row.word for row in found.rows)
    parts = ", ".join(f"{number} {word}" for word, number in sorted(words.items()) if word != "clean")
    asleep = f"; {count(len(found.untried), 'silent node')} not asked this time" if found.untried else ""
    total = count(len(found.rows), "node")
    lines.append(f"{_time()} {total}: {parts or 'clean'}{asleep}")
    return "\n".join(lines)


def _event(one: Event, out: Output) -> str:
    if one.what == "silent":
        return f"{out.paint(one.node, 'error')}: not read: {one.detail}"
    if one.what == "back":
        return f"{out.paint(one.node, 'good')}: is read again"
    where = f"{one.node} {one.port} {one.setting}".replace("  ", " ")
    reboot = "after a reboot " if one.layer == "stored" else ""
    if one.what == "gone":
        return f"{out.paint(where, 'good')}: is as wanted again ({one.wanted}), was {one.found}"
    more = "" if one.what == "appeared" else ", changed again"
    if one.layer == "pending":
        more += ": written, waits for a reset of its device"
    return f"{out.paint(where, 'error')}: {reboot}found {one.found}, wanted {one.wanted}{more}"


def _time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def round_json(found: Round) -> str:
    """One line: version 1, the state of every node that is not clean, and the events."""
    nodes = {row.node: row.word for row in found.rows if row.word != "clean"}
    data = {
        "version": 1,
        "clean": found.clean,
        "nodes": len(found.rows),
        "not_clean": nodes,
        "untried": list(found.untried),
        "inputs": found.inputs,
        "events": [one.as_json() for one in found.events],
    }
    return json.dumps(data)
