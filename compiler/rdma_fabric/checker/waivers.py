"""Waivers: accepted findings stay in every report, marked; expired or unused ones are findings themselves."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from rdma_fabric.checker import registry
from rdma_fabric.findings import Finding, Place, Severity, did_you_mean
from rdma_fabric.intent.models import Waiver
from rdma_fabric.resolve import Resolved

CODE_EXPIRED = "FAB090"
CODE_UNUSED = "FAB091"
CODE_UNKNOWN = "FAB092"


def apply_waivers(findings: Iterable[Finding], resolved: Resolved, today: datetime.date) -> list[Finding]:
    """Findings with `waived` filled where a waiver in force covers every place; a part is split off."""
    rest = list(findings)
    extra: list[Finding] = []
    for index, waiver in enumerate(resolved.intent.waivers):
        position = resolved.where("waivers", index)
        found = registry.find(waiver.rule)
        if found is None:
            near = did_you_mean(waiver.rule, [rule.name for rule in registry.rules()])
            help = f"did you mean {near}?" if near else "`fabric explain` lists the rules"
            extra.append(
                _own(
                    CODE_UNKNOWN,
                    "waiver-unknown-rule",
                    Severity.ERROR,
                    f"no rule {waiver.rule}",
                    help,
                    position,
                )
            )
            continue
        if waiver.until < today:
            extra.append(
                _own(
                    CODE_EXPIRED,
                    "waiver-expired",
                    Severity.ERROR,
                    f"the waiver of {waiver.rule} for {waiver.node or waiver.link} expired on {waiver.until}",
                    "mend the cause and remove the waiver, or set a new date with a reason",
                    position,
                )
            )
            continue
        rest, hits = _waive(rest, waiver, found.rule.code)
        if not hits:
            extra.append(
                _own(
                    CODE_UNUSED,
                    "waiver-unused",
                    Severity.NOTE,
                    f"the waiver of {waiver.rule} for {waiver.node or waiver.link} covers nothing",
                    "remove it when the cause is gone",
                    position,
                )
            )
    return [*rest, *extra]


def _waive(findings: Iterable[Finding], waiver: Waiver, code: str) -> tuple[list[Finding], int]:
    rest: list[Finding] = []
    hits = 0
    for one in findings:
        covered = [place for place in one.places if one.code == code and _covers(waiver, place)]
        open_ = [place for place in one.places if place not in covered]
        if not covered or one.waived:
            rest.append(one)
            continue
        hits += 1
        text = f"until {waiver.until}: {waiver.reason}"
        rest.append(replace(one, places=tuple(covered), count=len(covered), waived=text))
        if open_:
            rest.append(replace(one, places=tuple(open_), count=len(open_)))
    return rest, hits


def _covers(waiver: Waiver, place: Place) -> bool:
    if waiver.link:
        ends = [end.strip() for end in waiver.link.split(" - ")]
        return f"{place.node} {place.port}" in ends
    return fnmatchcase(place.node, waiver.node) and (not waiver.port or fnmatchcase(place.port, waiver.port))


def _own(code: str, name: str, severity: Severity, message: str, help: str, position: object) -> Finding:
    return Finding(
        code=code,
        name=name,
        severity=severity,
        places=(),
        setting="waiver",
        found="",
        wanted="",
        peer="",
        position=position,  # type: ignore[arg-type]
        help=help,
        message=message,
    )


def unused(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Waivers that cover nothing, for clean-up."""
    return (one for one in findings if one.code == CODE_UNUSED)
