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
from tests.seeded.catalogue import Variant
from tests.seeded.fabrics import Fabric
from tests.seeded.faults import Expect, Scene

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


def complaints(report: Report, expected: Iterable[Expect]) -> list[str]:
    """What is wrong with the report; empty when it says all that is expected and nothing else."""
    wanted = list(expected)
    troubles = []
    named: list[set[str]] = [set() for _ in wanted]
    said: list[str] = ["" for _ in wanted]
    for one in report.findings:
        for place in one.places or ("",):
            index = _meant(one, str(place), wanted)
            if index is not None:
                named[index] |= {str(place), str(place).partition(" ")[0]}
                said[index] += f"{one.message} {one.found}\n"
            elif _beside(one, str(place), wanted):
                continue
            elif one.severity > Severity.NOTE and not one.waived:
                where = place or "the fabric"
                troubles.append(
                    f"not expected: {one.severity} {one.code} at {where}: {one.setting}: {one.found}"
                )
    for expect, places, words in zip(wanted, named, said, strict=True):
        for place in sorted(expect.places - places):
            names = " or ".join(expect.settings)
            troubles.append(f"missing: {expect.severity} at {place or 'the fabric'}: {names}")
        if expect.says not in words:
            troubles.append(f"not said: {expect.says!r} in {words!r}")
    return troubles


def _meant(finding: Finding, place: str, wanted: list[Expect]) -> int | None:
    """The expectation that a finding at a place fulfils."""
    for index, one in enumerate(wanted):
        right = any(finding.setting.endswith(name) for name in one.settings)
        if right and _here(place, one) and str(finding.severity) == one.severity:
            return index
    return None


def _beside(finding: Finding, place: str, wanted: list[Expect]) -> bool:
    """True for what is said more mildly at a place that is to be named: nobody innocent is meant."""
    mild = finding.severity < Severity.ERROR
    return any(mild and one.severity == "error" and _here(place, one) for one in wanted)


def _here(place: str, one: Expect) -> bool:
    node = "" if place.startswith("network ") else place.partition(" ")[0]
    return place in one.places or (bool(node) and node in one.places)
