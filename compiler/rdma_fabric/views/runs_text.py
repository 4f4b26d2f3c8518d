"""Runs as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rdma_fabric.push.journal import NodeRecord, RunRecord
from rdma_fabric.views.output import Output

_OPEN = {
    "planned": "not started when the run died",
    "committing": "the run died while it committed here",
    "committed": "the run died between commit and confirm here",
    "confirming": "the run died while it confirmed here",
    "undoing": "the run died while it undid here",
}


def _state(record: RunRecord) -> str:
    if record.ended:
        counts = Counter(node.status for node in record.nodes.values())
        return ", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing to do"
    if record.recovered_by:
        return f"died; recovered by run {record.recovered_by}"
    return "died; the next apply or rollback recovers it"


def runs_text(records: Sequence[RunRecord]) -> str:
    """One line per run, oldest first."""
    if not records:
        return "no runs yet"
    return "\n".join(map(_line, records))


def _line(one: RunRecord) -> str:
    started = one.started.replace("T", " ")[:19]
    of = f" of {one.undoes}" if one.undoes else ""
    return f"{one.run:<10} {started}  {one.kind}{of}{' (lab)' if one.lab else ''}: {_state(one)}"


def run_text(record: RunRecord, out: Output) -> str:
    """One run with its nodes."""
    lines = [runs_text([record])]
    lines += [f"  Ansible: {one.hosts} hosts, {one.changed} changed" for one in record.plays]
    for name, node in record.nodes.items():
        lines.append(f"  {name}: {_node(node)}")
        if out.verbose or node.phase != "done":
            lines.extend(f"    {setting}: {found} -> {wanted}" for setting, found, wanted in node.settings)
    return "\n".join(lines)


def _node(node: NodeRecord) -> str:
    if node.phase != "done":
        return _OPEN[node.phase]
    wave = f" (wave {node.wave})" if node.wave else ""
    left = "; the next apply or rollback drops what the run left there" if node.left else ""
    return f"{node.status}{wave}{f': {node.detail}' if node.detail else ''}{left}"
