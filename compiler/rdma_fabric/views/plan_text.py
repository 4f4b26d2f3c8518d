"""Plans and results of a push as people read them: settings first, then exact lines; equal changes once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rdma_fabric.plan.base import BaseChange
from rdma_fabric.plan.changes import Plan, PlanRow
from rdma_fabric.plan.preview import Preview
from rdma_fabric.push.rows import Row
from rdma_fabric.settings import Deviation
from rdma_fabric.views.output import Output, count

UNPLANNED: Final = "wave and disturbance are not known, since they depend on what only the device knows"

SETTINGS_SHOWN = 40
LINES_SHOWN = 200


def names_text(names: Sequence[str]) -> str:
    """Node names written short."""
    from rdma_fabric.inventory.ranges import collapse

    return collapse(names)


def settings_text(found: Iterable[Deviation], out: Output, indent: str = "  ") -> list[str]:
    """One line per setting; ports with the same change share a line."""
    rows: dict[tuple[str, str, str, bool], list[str]] = {}
    for one in found:
        rows.setdefault((one.title, one.found, one.wanted, one.unknown), []).append(one.port)
    lines = []
    for (title, was, wanted, unknown), ports in rows.items():
        where = f"{names_text(ports)} " if any(ports) else ""
        # A DSCP map is full of arrows of its own.
        to = "=>" if "->" in was + wanted else "->"
        arrow = out.paint(f"{was or 'none'} {to} {wanted or 'none'}", "note" if unknown else "bold")
        lines.append(f"{indent}{where}{title}: {arrow}")
    if len(lines) > SETTINGS_SHOWN and not out.verbose:
        lines[SETTINGS_SHOWN:] = [f"{indent}... {len(lines) - SETTINGS_SHOWN} more settings (-v shows them)"]
    return lines


def lines_text(lines: Sequence[str], out: Output, indent: str = "    ") -> list[str]:
    """Exact lines, cut unless verbose."""
    shown = list(lines if out.verbose else lines[:LINES_SHOWN])
    painted = [indent + out.paint(line, _style(line)) for line in shown]
    if len(shown) < len(lines):
        painted.append(f"{indent}... {len(lines) - len(shown)} more lines (-v shows them)")
    return painted


def _style(line: str) -> str:
    if line.startswith("+") and not line.startswith("+++"):
        return "add"
    return "del" if line.startswith("-") and not line.startswith("---") else ""


def plan_text(plan: Plan, out: Output) -> str:
    """Every node's part, grouped by equal changes, and the waves."""
    lines: list[str] = []
    for group in _groups(plan.rows):
        lines.extend(_group_text(group, out))
        lines.append("")
    lines.extend(_waves_text(plan))
    lines.append(_counts_text(plan.rows))
    return "\n".join(lines)


def _groups(rows: Iterable[PlanRow]) -> list[list[PlanRow]]:
    found: dict[object, list[PlanRow]] = {}
    for row in rows:
        if row.status == "unchanged":
            continue
        key = (
            row.status,
            row.reason if row.status != "refused" else "",
            row.change.lines if row.change else (),
            row.deviations,
        )
        found.setdefault(key, []).append(row)
    return list(found.values())


def _group_text(rows: list[PlanRow], out: Output) -> list[str]:
    first = rows[0]
    style = {"change": "bold", "refused": "warning", "rejected": "error", "unreachable": "error"}.get(
        first.status, ""
    )
    head = f"{names_text([row.node for row in rows])}: {first.status}"
    if first.status == "change" and first.change is not None:
        head += f" (disturbs: {first.change.level})"
    lines = [out.paint(head, style)]
    lines.extend(f"  {reason}" for reason in dict.fromkeys(row.reason for row in rows if row.reason))
    lines.extend(settings_text(first.deviations, out))
    if first.change is not None and first.change.lines:
        lines.extend(lines_text(first.change.lines, out))
        lines.extend(_disturb_text(first, out))
    return lines


def _disturb_text(row: PlanRow, out: Output) -> list[str]:
    assert row.change is not None
    told = [
        f"  disturbs {_ports_text(one.ports)}: {one.level}: {one.what}"
        + (f" ({one.source})" if out.verbose else "")
        for one in row.change.disturbs
        if one.level
    ]
    return list(dict.fromkeys(told))


def _ports_text(ports: Sequence[str]) -> str:
    return names_text([port for port in ports if port]) or "the node"


def _waves_text(plan: Plan) -> list[str]:
    return [f"wave {number}: {names_text(names)}" for number, names in enumerate(plan.waves, 1)]


def _counts_text(rows: Iterable[PlanRow]) -> str:
    counts: Counter[str] = Counter(row.status for row in rows)
    total = sum(counts.values())
    order = (
        *("change", "unchanged", "pending-reset", "refused", "rejected", "unknown", "unreachable", "skipped"),
        "not-planned",
    )
    words = {"change": "to change"}
    parts = [f"{counts[status]} {words.get(status, status)}" for status in order if counts[status]]
    return f"{count(total, 'node')}: {', '.join(parts)}"


def rows_text(rows: Sequence[Row], out: Output) -> str:
    """One line per node, equal ones together; then the numbers."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.status, row.detail), []).append(row)
    lines = []
    for (status, detail), same in found.items():
        style = "good" if same[0].good else "error"
        text = f"{out.paint(status, style)}: {names_text([row.node for row in same])}"
        lines.append(text + (f": {detail}" if detail else ""))
    counts = Counter(row.status for row in rows)
    told = ", ".join(f"{number} {status}" for status, number in counts.items())
    lines.append(f"{count(len(rows), 'node')}: {told}")
    return "\n".join(lines)


def base_text(changes: Sequence[BaseChange], revision: str, preview: Preview, out: Output) -> str:
    """The pull-request view."""
    if not changes:
        return f"no node changes against {revision}"
    lines: list[str] = []
    if preview.tool[0] != preview.tool[1]:
        lines += [f"compiled by {preview.tool[0]} at {revision}, now by {preview.tool[1]}", ""]
    for one in changes:
        was = f" (was {names_text(one.was)})" if one.was else ""
        kind = "other text for the same settings" if one.kind == "rendered" else one.kind
        lines.append(out.paint(f"{names_text(one.nodes)}: {kind}{was}", "bold"))
        lines.extend(settings_text(one.settings, out))
        lines.extend(lines_text(one.lines, out))
        lines.append("")
    for disturbed in preview.disturbed:
        felt = "" if disturbed.felt else " (nobody with workload feels it)"
        text = f"{names_text(disturbed.nodes)}: {disturbed.level}: {disturbed.what}{felt}"
        lines.append(out.paint(text, "warning" if disturbed.felt else "note"))
    for number, wave in enumerate(preview.waves, 1):
        lines.append(f"wave {number}: {names_text(wave)}")
    if preview.unplanned:
        text = f"{names_text(preview.unplanned)}: {UNPLANNED}; `fabric diff` asks it"
        lines.append(out.paint(text, "warning"))
    nodes = sum(len(one.nodes) for one in changes)
    verb = "changes" if nodes == 1 else "change"
    lines.append(f"{count(nodes, 'node')} {verb} against {revision}, in {count(len(changes), 'group')}")
    return "\n".join(lines)
