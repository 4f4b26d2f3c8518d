"""What a pull request means, as markdown for its comment: never longer than a forge takes, at any size."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rdma_fabric.findings import Finding, Severity
from rdma_fabric.inventory.ranges import collapse
from rdma_fabric.views.markdown import LIMIT, finding_row, fitting, plain, table
from rdma_fabric.views.output import count
from rdma_fabric.views.plan_text import UNPLANNED

if TYPE_CHECKING:
    from rdma_fabric.plan.base import BaseChange
    from rdma_fabric.plan.preview import Preview
    from rdma_fabric.settings import Deviation
    from rdma_fabric.views.verdict import Source

MARK: Final = "<!-- rdma-fabric: pull request -->"
"""First line: by it a bot finds its own comment again and writes over it."""
NAMES: Final = 400
"""Longest list of nodes, characters."""
LINES: Final = 60
"""Lines of one group's diff."""
_ROOM_OF_FINDINGS: Final = LIMIT // 3
_KINDS: Final = {
    "changed": "change",
    "added": "are new",
    "removed": "are removed",
    "renamed": "have another name",
    "rendered": "get other text for the same settings",
}


def base_markdown(
    changes: Sequence[BaseChange],
    revision: str,
    preview: Preview,
    findings: Iterable[Finding],
    new: Collection[Finding],
    source: Source,
    fabric: str,
) -> str:
    """The whole comment; what does not fit is counted, never silently left out."""
    lines = [MARK, f"## fabric: {plain(fabric)} against {plain(revision)}", "", _head(changes, preview)]
    lines += _findings(list(findings), new, source)
    lines += _disturbance(preview)
    lines += _waves(preview)
    if preview.unplanned:
        lines += [f"**{_names(preview.unplanned)}**: {UNPLANNED}.", ""]
    room = LIMIT - sum(len(line) + 1 for line in lines) - 500
    return "\n".join([*lines, *_groups(changes, room)])


def _head(changes: Sequence[BaseChange], preview: Preview) -> str:
    if not changes:
        return "**No node changes.**"
    kinds = {kind: sum(len(one.nodes) for one in changes if one.kind == kind) for kind in _KINDS}
    parts = [f"{count(number, 'node')} {_KINDS[kind]}" for kind, number in kinds.items() if number]
    text = f"**{', '.join(parts)}**, in {count(len(changes), 'group')} of equal changes."
    if preview.tool[0] != preview.tool[1]:
        text += (
            f" The base was compiled by fabric {plain(preview.tool[0])}, this by {plain(preview.tool[1])}."
        )
    return text


# -- findings


def _findings(findings: list[Finding], new: Collection[Finding], source: Source) -> list[str]:
    """New ones first and open, old ones folded; notes only where they are new."""
    row = finding_row(source)
    columns = ("Rule", "Where", "What", "Help", "File")
    heavy = [one for one in findings if one.severity is not Severity.NOTE and not one.waived]
    parts = (
        ("New errors", [one for one in heavy if one in new and one.severity is Severity.ERROR], False),
        ("New warnings", [one for one in heavy if one in new and one.severity is Severity.WARNING], False),
        ("Errors and warnings of the base too", [one for one in heavy if one not in new], True),
        ("New notes", [one for one in findings if one in new and one.severity is Severity.NOTE], True),
    )
    lines: list[str] = []
    room = _ROOM_OF_FINDINGS
    for title, some, folded in parts:
        if some:
            rows = list(map(row, some))
            part = table(title, columns, fitting(rows, room), len(rows), folded)
            room -= sum(map(len, part)) + len(part)
            lines += part
    return lines


# -- the push


def _disturbance(preview: Preview) -> list[str]:
    if not preview.disturbed:
        return []
    rows = [
        (
            _names(one.nodes),
            one.level,
            plain(one.what),
            "yes" if one.felt else "no",
            plain(one.source),
        )
        for one in preview.disturbed
    ]
    columns = ("Nodes", "Disturbs", "What", "Felt by workload", "Says")
    return table("Disturbance", columns, fitting(rows, 6_000), len(rows), False)


def _waves(preview: Preview) -> list[str]:
    rows = [(str(number), str(len(wave)), _names(wave)) for number, wave in enumerate(preview.waves, 1)]
    return table("Waves", ("Wave", "Nodes", "Names"), fitting(rows, 6_000), len(rows), True) if rows else []


def _names(nodes: Iterable[str]) -> str:
    text = collapse(nodes)
    return plain(text if len(text) <= NAMES else f"{text[:NAMES].rpartition(',')[0]} ...")


# -- groups


def _groups(changes: Sequence[BaseChange], room: int) -> list[str]:
    """The largest groups first; those that do not fit are counted."""
    lines: list[str] = []
    left = 0
    for one in sorted(changes, key=lambda change: -len(change.nodes)):
        part = _group(one)
        size = sum(len(line) + 1 for line in part)
        if size > room:
            left += 1
            continue
        room -= size
        lines += part
    if left:
        lines += ["", f"{count(left, 'group')} more do not fit here: run `fabric diff --base`."]
    return lines


def _group(one: BaseChange) -> list[str]:
    was = f" (was {_names(one.was)})" if one.was else ""
    head = f"{_names(one.nodes)}: {'changed text' if one.kind == 'rendered' else one.kind}{was}"
    lines = ["", f"<details><summary>{head} ({count(len(one.nodes), 'node')})</summary>", ""]
    rows = _settings(one.settings)
    if rows:
        lines += ["| Setting | Base | Here |", "| --- | --- | --- |"]
        lines += [f"| {' | '.join(row)} |" for row in rows[:LINES]]
        if len(rows) > LINES:
            lines.append(f"| {len(rows) - LINES} more settings | | |")
        lines.append("")
    if one.lines:
        fence = _fence(one.lines)
        lines += [f"{fence}diff", *(line[:300] for line in one.lines[:LINES])]
        lines += [f"... {len(one.lines) - LINES} more lines"] if len(one.lines) > LINES else []
        lines += [fence]
    return [*lines, "", "</details>"]


def _fence(lines: Iterable[str]) -> str:
    """Longer than any run of backticks in the text."""
    longest = max((len(run) for line in lines for run in line.split("`") if not run), default=0)
    return "`" * max(3, longest + 3)


def _settings(found: Iterable[Deviation]) -> list[tuple[str, str, str]]:
    """One row per setting; ports with the same change share it."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for one in found:
        rows.setdefault((one.title, one.found, one.wanted), []).append(one.port)
    return [
        (
            plain(f"{_short(ports)} {title}".strip()),
            plain(was or "none")[:300],
            plain(now or "none")[:300],
        )
        for (title, was, now), ports in rows.items()
    ]


def _short(ports: Iterable[str]) -> str:
    text = collapse(port for port in ports if port)
    return text if len(text) <= NAMES else f"{text[:NAMES]} ..."
