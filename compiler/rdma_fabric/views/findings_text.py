"""Findings as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rdma_fabric.findings import Finding, Severity
from rdma_fabric.views.output import Output, count

WIDTH = 34
"""Column at which `wanted` starts where `found` is short enough to share the line."""


def finding_text(one: Finding, out: Output) -> str:
    """One finding over several lines."""
    style = "dim" if one.waived else str(one.severity)
    label = f"{'waived ' if one.waived else ''}{one.severity}[{one.code}]"
    lines = [f"{out.paint(label, style)} {one.name}: {one.message}"]
    if one.position:
        lines.append(f"  --> {one.position}")
    if one.excerpt:
        lines.extend(f"   {line}" for line in one.excerpt.splitlines())
    lines.extend(_values(one))
    for word, text in (
        ("setting", one.setting if one.places and one.setting not in one.message else ""),
        ("peer", one.peer),
        ("why", one.reason),
        ("waived", one.waived),
        ("help", one.help),
    ):
        if text:
            lines.append(f"   {word:<7} {text}")
    return "\n".join(lines)


def _values(one: Finding) -> list[str]:
    if not one.found or not one.wanted:
        told = (("found", one.found), ("wanted", one.wanted))
        return [f"   {word:<7} {text}" for word, text in told if text]
    if len(one.found) < WIDTH:
        return [f"   found   {one.found:<{WIDTH}} wanted  {one.wanted}".rstrip()]
    return [f"   found   {one.found}", f"   wanted  {one.wanted}"]


def findings_text(found: Iterable[Finding], out: Output) -> str:
    """All findings with an empty line between."""
    return "\n\n".join(finding_text(one, out) for one in found)


def summary(
    found: Iterable[Finding],
    nodes: int,
    rejected: tuple[str, ...],
    affected: Mapping[str, tuple[str, ...]],
    short: str,
) -> str:
    """The last line of `check`: numbers, and who is rejected. `short` writes node names shortly."""
    counts = dict.fromkeys(Severity, 0)
    waived = 0
    for one in found:
        if one.waived:
            waived += 1
        else:
            counts[one.severity] += 1
    parts = [
        count(counts[severity], str(severity))
        for severity in sorted(counts, reverse=True)
        if counts[severity]
    ]
    if waived:
        parts.append(f"{waived} waived")
    text = f"{count(nodes, 'node')} checked: {', '.join(parts) if parts else 'all agree'}"
    if rejected:
        text += f"; rejected: {short}"
    if affected:
        text += f"; affected: {len(affected)} more"
    return text
