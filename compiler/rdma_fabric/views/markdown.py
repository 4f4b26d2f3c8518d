"""Findings as markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from rdma_fabric.findings import Finding, Severity
from rdma_fabric.views.verdict import Source, Verdict, waiver_parts, where

LIMIT: Final = 60_000
"""Characters; GitHub refuses comments of more than 65,536."""
PLACES: Final = 6
"""Places named per row."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!])")
_UNITS: Final = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings", Severity.NOTE: "Notes"}

Row = tuple[str, ...]


def report_markdown(verdict: Verdict) -> str:
    """The whole verdict; what does not fit is counted, never silently left out."""
    lines = [
        f"## fabric {verdict.command}{f': {plain(verdict.fabric)}' if verdict.fabric else ''}",
        "",
        _head(verdict),
    ]
    room = LIMIT - sum(len(line) + 1 for line in lines) - 1_000
    for title, columns, rows, folded in _parts(verdict):
        shown = fitting(rows, room)
        part = table(title, columns, shown, len(rows), folded)
        room -= sum(map(len, part)) + len(part)
        lines += part
    return "\n".join(lines)


def _head(verdict: Verdict) -> str:
    counts = [
        f"{count} {severity}{'' if count == 1 else 's'}"
        for severity, count in verdict.counts.items()
        if count
    ]
    if not verdict.loaded:
        return f"**The input cannot be used: {', '.join(counts)}.** No rule was judged."
    waived = len(verdict.waived)
    counts += [f"{waived} waived"] if waived else []
    text = f"**{verdict.nodes} nodes checked: {', '.join(counts) or 'all agree'}.**"
    if verdict.rejected:
        text += f" Rejected: {plain(verdict.rejected_short or ', '.join(verdict.rejected))}."
    if verdict.affected:
        text += f" {len(verdict.affected)} more depend on them."
    return text


def _parts(verdict: Verdict) -> list[tuple[str, Row, list[Row], bool]]:
    """(title, columns, rows, folded) of each table that has rows."""
    columns = ("Rule", "Where", "What", "Help", "File")
    row = finding_row(verdict.source)
    parts: list[tuple[str, Row, list[Row], bool]] = []
    for severity in sorted(Severity, reverse=True):
        found = [one for one in verdict.findings if one.severity is severity and not one.waived]
        parts.append((_UNITS[severity], columns, list(map(row, found)), severity is Severity.NOTE))
    waived: list[Row] = [_waiver(one) for one in verdict.waived]
    parts.append(("Waived", ("Rule", "Where", "What", "Until", "Reason"), waived, False))
    unjudged: list[Row] = [(code, plain(why), str(count)) for code, why, count in verdict.not_judged]
    parts.append(("Not judged", ("Rule", "Why", "Kinds of place"), unjudged, True))
    return [part for part in parts if part[2]]


def finding_row(source: Source) -> Callable[[Finding], Row]:
    """What makes the row of a finding: rule, where, what, help, file."""

    def row(one: Finding) -> Row:
        values = [f"{word} {text}" for word, text in (("found", one.found), ("wanted", one.wanted)) if text]
        what = plain(one.message) + (f"<br>{plain(', '.join(values))}" if values else "")
        what += f"<br>{plain(one.peer)}" if one.peer else ""
        return f"{one.code} {one.name}", _places(one), what, plain(one.help), _file(one, source)

    return row


def _waiver(one: Finding) -> Row:
    until, reason = waiver_parts(one.waived)
    return f"{one.code} {one.name}", _places(one), plain(one.message), until, plain(reason)


def _file(one: Finding, source: Source) -> str:
    return plain(source.at(replace(one.position, column=0)).removesuffix(":0")) if one.position else ""


def _places(one: Finding) -> str:
    names = list(dict.fromkeys(where(place) for place in one.places))
    more = f" and {len(names) - PLACES} more" if len(names) > PLACES else ""
    return plain(", ".join(names[:PLACES])) + more


def fitting(rows: Sequence[Row], room: int) -> Sequence[Row]:
    """The first rows that fit into so many characters."""
    used = 0
    for number, row in enumerate(rows):
        used += sum(map(len, row)) + 3 * len(row) + 2
        if used > room:
            return rows[:number]
    return rows


def table(title: str, columns: Row, rows: Iterable[Row], total: int, folded: bool) -> list[str]:
    """Lines of a table with its title; `total` counts the rows that did not fit, too."""
    shown = list(rows)
    head = f"<details><summary>{title} ({total})</summary>" if folded else f"### {title}"
    lines = ["", head, ""]
    if shown:
        lines += [_line(columns), _line(("---",) * len(columns)), *map(_line, shown)]
    if len(shown) < total:
        lines += ["", f"{total - len(shown)} more do not fit here: run `fabric check`."]
    return [*lines, "", "</details>"] if folded else lines


def _line(cells: Row) -> str:
    return f"| {' | '.join(cells)} |"


def plain(text: str) -> str:
    """Text that stays text: one line, nothing that markdown or HTML would read, nobody mentioned."""
    text = "".join(c if c.isprintable() or c.isspace() else f"\\u{ord(c):04x}" for c in text)
    safe = _SPECIAL.sub(r"\\\1", " ".join(text.split()).replace("&", "&amp;"))
    return safe.replace("@", "@\u200b")
