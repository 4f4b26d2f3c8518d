"""Waivers: accepted findings stay in every report, marked; the rules on waivers judge each one afterwards."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache

from rdma_fabric.checker import registry
from rdma_fabric.checker.scopes import WaiverRule, WaiverView
from rdma_fabric.checker.words import places_text
from rdma_fabric.findings import HEALTH, BadValue, Finding, Place, did_you_mean, health_check
from rdma_fabric.intent.models import Waiver
from rdma_fabric.inventory.ranges import expand
from rdma_fabric.resolve import Resolved


def apply_waivers(findings: Iterable[Finding], resolved: Resolved, today: datetime.date) -> list[Finding]:
    """Findings with `waived` filled where a waiver in force covers every place; a part is split off."""
    rest = list(findings)
    extra: list[Finding] = []
    for index, waiver in enumerate(resolved.intent.waivers):
        found = registry.find(waiver.rule)
        of_health = health_check(waiver.rule) is not None
        expired = waiver.until < today
        covered = int(of_health)  # what `verify` finds is not here: nobody can say that it covers nothing
        others: tuple[str, ...] = ()
        if found and not expired:
            scope = _Scope(waiver, found.rule.code, resolved)
            others = scope.other_settings(rest)
            rest, covered = _waive(rest, scope)
        names = [*(rule.name for rule in registry.rules()), *(one.name for one in HEALTH)]
        near = "" if found or of_health else did_you_mean(waiver.rule, names)
        view = WaiverView(waiver, found is not None or of_health, near, expired, covered, others)
        extra.extend(_judge(view, resolved, index))
    return [*rest, *extra]


def waive(findings: Iterable[Finding], resolved: Resolved, today: datetime.date) -> list[Finding]:
    """Findings of `verify` with `waived` filled where a waiver in force covers every place."""
    rest = list(findings)
    for waiver in resolved.intent.waivers:
        check = health_check(waiver.rule)
        if check and waiver.until >= today:
            rest, _ = _waive(rest, _Scope(waiver, check.code, resolved))
    return rest


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


@dataclass(frozen=True, slots=True)
class _Scope:
    """What one waiver is for."""

    waiver: Waiver
    code: str
    resolved: Resolved

    def covered(self, one: Finding) -> list[Place]:
        """The places of a finding that the waiver accepts."""
        if one.waived or one.code != self.code or not self._setting(one.setting):
            return []
        return [place for place in one.places if self._here(place)]

    def other_settings(self, findings: Iterable[Finding]) -> tuple[str, ...]:
        """Settings of the rule's findings at these places that the waiver's own setting leaves out."""
        return tuple(
            dict.fromkeys(
                one.setting
                for one in findings
                if one.code == self.code
                and not self._setting(one.setting)
                and any(map(self._here, one.places))
            )
        )

    def _setting(self, name: str) -> bool:
        wanted = self.waiver.setting
        return not wanted or fnmatchcase(name.lower(), wanted.lower())

    def _here(self, place: Place) -> bool:
        waiver = self.waiver
        if waiver.link:
            ends = [end.strip() for end in waiver.link.split(" - ")]
            return f"{place.node} {place.port}" in ends
        if not place.node:
            return not waiver.node and bool(place.network) and place.network == waiver.network
        if place.network and not waiver.node:
            return place.network == waiver.network  # what the intent says, told at the nodes that it is for
        return (
            _named(place.node, waiver.node)
            and (not waiver.port or _named(place.port, waiver.port))
            and (not waiver.network or self._network(place) == waiver.network)
        )

    def _network(self, place: Place) -> str:
        if place.network:
            return place.network
        node = self.resolved.inventory.nodes.get(place.node)
        port = node.spec.ports.get(place.port) if node else None
        return port.network if port else ""


def _waive(findings: Iterable[Finding], scope: _Scope) -> tuple[list[Finding], int]:
    rest: list[Finding] = []
    hits = 0
    for one in findings:
        covered = scope.covered(one)
        if not covered:
            rest.append(one)
            continue
        hits += 1
        text = f"until {scope.waiver.until}: {scope.waiver.reason}"
        open_ = tuple(place for place in one.places if place not in covered)
        rest.append(replace(_at(one, tuple(covered)), waived=text))
        if open_:
            rest.append(_at(one, open_))
    return rest, hits


def _at(one: Finding, places: tuple[Place, ...]) -> Finding:
    """The finding for some of its places, its headline too."""
    message = one.message.replace(places_text(one.places), places_text(places), 1)
    return replace(one, places=places, count=len(places), message=message)


@cache
def _named(name: str, pattern: str) -> bool:
    """True when the pattern is this name, a glob or a range that holds it (as in selectors)."""
    if fnmatchcase(name, pattern):
        return True
    try:
        return name in expand(pattern)
    except BadValue:
        return False


__all__ = ["apply_waivers", "waive"]
