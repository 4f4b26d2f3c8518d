"""Verdicts of `fabric admit` as text and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rdma_fabric.admit import Unread, Verdict, Word
from rdma_fabric.views.findings_json import finding_data
from rdma_fabric.views.findings_text import finding_text
from rdma_fabric.views.output import Output, count

_WORDS: dict[Word, str] = {"admit": "admitted", "refuse": "refused", "unknown": "could not be judged"}
_STYLES: dict[Word, str] = {"admit": "good", "refuse": "error", "unknown": "warning"}


def admit_text(verdicts: Sequence[Verdict], out: Output) -> str:
    """A line per node, below it what speaks against it and what nobody could say; the numbers at the end."""
    lines: list[str] = []
    for one in verdicts:
        lines.append(f"{one.node}: {out.paint(_WORDS[one.word], _STYLES[one.word])}")
        for port in one.down:
            lines.append(f"  the link of {one.node} {port} is not up")
        for finding in one.findings:
            lines.extend(f"  {line}" for line in finding_text(finding, out).splitlines())
        lines.extend(f"  {_unread(gap)}" for gap in one.unknown)
    counts = Counter(one.word for one in verdicts)
    parts = [f"{counts[word]} {_WORDS[word]}" for word in _WORDS if counts[word]]
    return "\n".join([*lines, f"{count(len(verdicts), 'node')}: {', '.join(parts)}"])


def _unread(one: Unread) -> str:
    return f"{one.node}{f' {one.port}' if one.port else ''}: {one.why}"


def admit_json(verdicts: Sequence[Verdict]) -> str:
    """Version 1."""
    nodes: list[dict[str, Any]] = [
        {
            "node": one.node,
            "verdict": one.word,
            "neighbours": list(one.neighbours),
            "findings": [finding_data(finding) for finding in one.findings],
            "down": list(one.down),
            "unknown": [{"node": gap.node, "port": gap.port, "why": gap.why} for gap in one.unknown],
        }
        for one in verdicts
    ]
    good = all(one.word == "admit" for one in verdicts)
    return json.dumps({"version": 1, "admitted": good, "nodes": nodes}, indent=1)
