"""Runs the real pipeline on a seeded fabric and compares its report with what was expected."""

from __future__ import annotations

import copy
import datetime
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rdma_fabric import platforms
from rdma_fabric.checker import Report, build, check
from rdma_fabric.cli.common import load
from rdma_fabric.codec import dump_observations, load_observations
from rdma_fabric.findings import Finding, Severity
from rdma_fabric.resolve import Resolved
from rdma_fabric.state import Observation
from tests.seeded.fabrics import Fabric
from tests.seeded.faults import Expect, Scene, Variant

TODAY = datetime.date(2026, 1, 15)


@dataclass
class Base:
    """A sound fabric, read once, with what its devices would show."""

    fabric: Fabric
    folder: Path
    resolved: Resolved = field(init=False)
    seen: dict[str, Observation] = field(init=False)
    plain: dict[str, Any] = field(init=False)
    """The same as the JSON of a state file."""

    def __post_init__(self) -> None:
        self.resolved = load(self.fabric.write(self.folder))
        self.seen = sound(self.resolved)
        self.plain = state_file(self.seen)

    def report(self, variant: Variant) -> tuple[Report, tuple[Expect, ...]]:
        """The report on the fabric with the variant's faults, and what is expected of it."""
        rng = random.Random(variant.name)
        scene = Scene(self.fabric.copy() if variant.of_files else self.fabric, rng=rng)
        expected = [one.apply(scene) for one in variant.of_files]
        resolved, seen, plain = self.resolved, self.seen, self.plain
        if variant.of_files:
            resolved = load(scene.fabric.write(self.folder))
        if not variant.of_devices:
            return verdict(resolved), tuple(expected)
        if variant.of_files:
            seen = sound(resolved)
            plain = state_file(seen)
        scene.seen = copy.deepcopy(plain)
        expected += [one.apply(scene) for one in variant.of_devices]
        changed = {name: one for name, one in scene.seen.items() if one != plain[name]}
        broken = load_observations(json.dumps({"version": 1, "nodes": changed}), "observed.json")
        return verdict(resolved, seen | broken), tuple(expected)


def state_file(seen: dict[str, Observation]) -> dict[str, Any]:
    """The nodes of a state file, as JSON data."""
    found: dict[str, Any] = json.loads(dump_observations(seen))["nodes"]
    return found


def sound(resolved: Resolved) -> dict[str, Observation]:
    """What every device shows when it is as the intent wants it."""
    return {
        name: Observation(platforms.realize(plan.state, plan.hardware).state)
        for name, plan in resolved.plans.items()
    }


def verdict(resolved: Resolved, seen: Mapping[str, Observation] | None = None) -> Report:
    """The checker's report."""
    return check(build(resolved, seen), TODAY)


def loud(report: Report) -> list[Finding]:
    """Errors and warnings."""
    return [one for one in report.findings if one.severity > Severity.NOTE and not one.waived]


def identity(one: Finding) -> tuple[str, ...]:
    """What makes two findings the same, wherever they are."""
    return one.code, str(one.severity), one.setting, one.found, one.wanted


def complaints(
    report: Report, expected: Iterable[Expect], known: Iterable[tuple[str, ...]] = ()
) -> list[str]:
    """What is wrong with the report; empty when it says all that is expected and nothing else."""
    wanted = list(expected)
    old = set(known)
    found = [one for one in loud(report) if identity(one) not in old]
    troubles = []
    named: dict[int, set[str]] = {index: set() for index in range(len(wanted))}
    for one in found:
        for place in one.places or ("",):
            index = _meant(one, str(place), wanted)
            if index is None:
                where = place or "the fabric"
                troubles.append(
                    f"not expected: {one.severity} {one.code} at {where}: {one.setting}: {one.found}"
                )
            else:
                named[index] |= {str(place), str(place).partition(" ")[0]}
    for index, expect in enumerate(wanted):
        for place in sorted(expect.places - named[index]):
            names = " or ".join(expect.settings)
            troubles.append(f"missing: {expect.severity} at {place or 'the fabric'}: {names}")
    return troubles


def _meant(finding: Finding, place: str, wanted: list[Expect]) -> int | None:
    """The expectation that a finding at a place fulfils."""
    for index, one in enumerate(wanted):
        here = place in one.places or (
            place.partition(" ")[0] in one.places and not place.startswith("network ")
        )
        right = any(finding.setting.endswith(name) for name in one.settings)
        severity = str(finding.severity)
        if here and ((right and severity == one.severity) or severity != "error"):
            return index
    return None
