"""Waivers: accepted findings stay in every report, marked; the rules on waivers judge each one afterwards."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache

from rdma_fabric.checker import registry
from rdma_fabric.checker.scopes import WaiverRule, WaiverView
from rdma_fabric.checker.words import places_text
from rdma_fabric.findings import BadValue, Finding, Place, did_you_mean
from rdma_fabric.intent.models import Waiver
from rdma_fabric.inventory.ranges import expand
from rdma_fabric.resolve import Resolved


def apply_waivers(findings: Iterable[Finding], resolved: Resolved, today: datetime.date) -> list[Finding]:
    """Findings with `waived` filled where a waiver in force covers every place; a part is split off."""
    rest = list(findings)
    extra: list[Finding] = []
    for index, waiver in enumerate(resolved.intent.waivers):
        found = registry.find(waiver.rule)
        expired = waiver.until < today
        covered = 0
        if found and not expired:
            rest, covered = _waive(rest, waiver, found.rule.code)
        near = "" if found else did_you_mean(waiver.rule, [rule.name for rule in registry.rules()])
        view = WaiverView(waiver, found is not None, near, expired, covered)
        extra.extend(_judge(view, resolved, index))
    return [*rest, *extra]


def _judge(view: WaiverView, resolved: Resolved, index: int) -> Iterator[Finding]:
    for rule in registry.rules():
        if not isinstance(rule, WaiverRule):
            continue
        for hit in rule.check(view):
            yield Finding(
                code=rule.code,
                name=rule.name,
                severity=hit.severity or rule.severity,
                places=(),
                setting=hit.setting,
                found=hit.found,
                wanted=hit.wanted,
                peer="",
                position=resolved.where("waivers", index),
                help=hit.help,
                message=hit.message,
                reason=hit.reason,
            )


def _waive(findings: Iterable[Finding], waiver: Waiver, code: str) -> tuple[list[Finding], int]:
    rest: list[Finding] = []
    hits = 0
    for one in findings:
        covered = [place for place in one.places if one.code == code and _covers(waiver, place)]
        if not covered or one.waived:
            rest.append(one)
            continue
        hits += 1
        text = f"until {waiver.until}: {waiver.reason}"
        open_ = tuple(place for place in one.places if place not in covered)
        rest.append(replace(_at(one, tuple(covered)), waived=text))
        if open_:
            rest.append(_at(one, open_))
    return rest, hits


def _at(one: Finding, places: tuple[Place, ...]) -> Finding:
    """The finding for some of its places, its headline too."""
    message = one.message.replace(places_text(one.places), places_text(places), 1)
    return replace(one, places=places, count=len(places), message=message)


def _covers(waiver: Waiver, place: Place) -> bool:
    if waiver.link:
        ends = [end.strip() for end in waiver.link.split(" - ")]
        return f"{place.node} {place.port}" in ends
    if not place.node:
        return False
    return _named(place.node, waiver.node) and (not waiver.port or _named(place.port, waiver.port))


@cache
def _named(name: str, pattern: str) -> bool:
    """True when the pattern is this name, a glob or a range that holds it (as in selectors)."""
    if fnmatchcase(name, pattern):
        return True
    try:
        return name in expand(pattern)
    except BadValue:
        return False


__all__ = ["apply_waivers"]
