"""Device lines with what makes them, as text and JSON, and compiled files with a note at every line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rdma_fabric.inventory.ranges import collapse

if TYPE_CHECKING:
    from rdma_fabric.trace import Cause, Line, Traced
    from rdma_fabric.views.output import Output

_CAUSES: Final = 4
"""Causes shown at a line without -v."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What one group of equal nodes shows: indices of lines in `traced`."""

    nodes: tuple[str, ...]
    traced: Traced
    lines: tuple[int, ...]


def trace_text(found: Sequence[Shown], reverse: bool, out: Output) -> str:
    """Every line with its causes; with `reverse` every cause with its lines."""
    parts: list[str] = []
    for one in found:
        if one.lines:
            parts.extend(_by_cause(one, out) if reverse else _by_line(one, out))
    return "\n".join(parts)


def _by_line(one: Shown, out: Output) -> Iterator[str]:
    """Lines that have the same text and causes are told once."""
    groups: dict[Any, list[Line]] = {}
    for index in one.lines:
        line = one.traced.lines[index]
        causes = one.traced.of(index, general=out.verbose)
        groups.setdefault((line.text.strip(), line.file, causes), []).append(line)
    for (text, file, causes), lines in groups.items():
        places = ", ".join(f"{line.number}" for line in lines[:6]) + (" ..." if len(lines) > 6 else "")
        yield out.paint(f"{collapse(one.nodes)} {file}:{places}", "bold")
        if lines[0].section:
            yield out.paint(f"   below {' > '.join(lines[0].section)}", "dim")
        yield f"   {text}"
        shown = causes if out.verbose else causes[:_CAUSES]
        yield from (f"   <- {_cause(cause)}" for cause in shown)
        if len(causes) > len(shown):
            yield out.paint(f"      and {len(causes) - len(shown)} more (-v)", "dim")
        note = _constant(lines[0], causes)
        if note:
            yield out.paint(f"   {note}", "dim")
        yield ""


def _by_cause(one: Shown, out: Output) -> Iterator[str]:
    for cause in one.traced.causes:
        yield out.paint(f"{_cause(cause)}", "bold")
        yield f"   on {collapse(one.nodes)}:"
        most = len(cause.lines) if out.verbose else 12
        for index in sorted(cause.lines)[:most]:
            line = one.traced.lines[index]
            yield f"   {line.file}:{line.number}: {line.text.strip()}"
        if len(cause.lines) > most:
            yield out.paint(f"   and {len(cause.lines) - most} more (-v)", "dim")
        yield ""


def _cause(cause: Cause) -> str:
    text = f"{cause.position}  {cause.setting} = {cause.value}"
    return text if cause.how == "value" else f"{text}  (the line is there because this is)"


def _constant(line: Line, causes: Sequence[Cause]) -> str:
    """Why a line holds no value of the sources; empty for one that does."""
    if line.fixed:
        return f"constant: templates/{line.template} has it as it is, values decide only whether it is there"
    if not causes:
        return (
            f"constant: no single value of intent or inventory changes it (templates/{line.template}, "
            "from facts of the platform)"
        )
    return ""


def trace_json(found: Sequence[Shown], reverse: bool) -> str:
    """The same for programs; all causes of every line."""
    rows = [
        {"nodes": list(one.nodes), "lines": [_line_json(one.traced, index) for index in one.lines]}
        for one in found
    ]
    return json.dumps({"version": 1, "by": "source" if reverse else "line", "found": rows}, indent=1)


def _line_json(traced: Traced, index: int) -> dict[str, Any]:
    line = traced.lines[index]
    causes = traced.of(index)
    return {
        "file": line.file,
        "line": line.number,
        "text": line.text,
        "section": list(line.section),
        "template": line.template,
        "constant": line.fixed or not causes,
        "causes": [
            {
                "file": cause.position.file,
                "line": cause.position.line,
                "column": cause.position.column,
                "setting": cause.setting,
                "value": cause.value,
                "how": cause.how,
                "tried": cause.tried,
            }
            for cause in causes
        ],
    }


def annotated(traced: Traced) -> dict[str, str]:
    """Compiled file -> its lines, each with the places that make it; for reading, not for devices."""
    found: dict[str, list[str]] = {}
    for index, line in enumerate(traced.lines):
        causes = traced.of(index, general=False)[:_CAUSES]
        places = "; ".join(f"{cause.position} {cause.setting} = {cause.value}" for cause in causes)
        if line.fixed or not causes:
            places = "constant" + (f", there because of {places}" if places else "")
        found.setdefault(line.file, []).append(f"{line.number:>5}  {line.text}\n       <- {places}")
    return {file: "\n".join(lines) + "\n" for file, lines in found.items()}
