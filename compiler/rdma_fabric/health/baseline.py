"""Numbers of a sound fabric, kept in DIR/.fabric, and what got worse since."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rdma_fabric.findings import Finding, InputError, Place, Position, Severity, input_finding
from rdma_fabric.health.types import Judgement, Metric, Scene, finding, in_service
from rdma_fabric.inventory.types import End

FILE: Final = "verify/baseline.json"
"""Below DIR/.fabric, or DIR/.fabric/lab for a lab."""
RATE: Final = "/s"
QUIET: Final = 1.0
"""Events a second that say nothing: a rate is worse only by more than this."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """When it was saved, and its numbers by name."""

    saved: str
    values: Mapping[str, float]
    units: Mapping[str, str] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()
    """Whose counters were read: a rate of theirs that is not kept was 0."""

    def of(self, name: str, now: Metric) -> float | None:
        """The number of that name; None where it was not measured."""
        quiet = now.unit == RATE and all(place.node in self.nodes for place in now.places)
        return self.values.get(name, 0.0 if quiet else None)


def load(path: Path) -> Baseline | None:
    """None where there is none; InputError where the file is not ours."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != 1:
            raise ValueError
        rows = {str(name): (float(one["value"]), str(one["unit"])) for name, one in data["metrics"].items()}
        return Baseline(
            str(data["saved"]),
            {name: value for name, (value, _) in rows.items()},
            {name: unit for name, (_, unit) in rows.items()},
            frozenset(map(str, data["nodes"])),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        help = "remove it, and save a new one with `fabric verify --baseline`"
        at = Position(str(path), 0, 0)
        raise InputError([input_finding("file", "is not a baseline of `fabric verify`", at, help)]) from None


def save(path: Path, judgements: Iterable[Judgement], nodes: Iterable[str], now: str) -> int:
    """Writes the numbers over those of the same names; how many were measured. `nodes`: whose counters were
    read twice, whose old rates are forgotten."""
    old = load(path) or Baseline("", {})
    read = frozenset(nodes)
    kept = {
        name: {"value": value, "unit": old.units.get(name, "")}
        for name, value in old.values.items()
        if old.units.get(name) != RATE or name.partition(" ")[0] not in read
    }
    new = {
        name: {"value": round(one.value, 3), "unit": one.unit}
        for step in judgements
        for name, one in step.metrics.items()
    }
    data = {"version": 1, "saved": now, "nodes": sorted(old.nodes | read), "metrics": kept | new}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    beside.replace(path)
    return len(new)


def compare(
    scene: Scene, judgements: Iterable[Judgement], base: Baseline, margin: float
) -> tuple[Finding, ...]:
    """What is worse by more than `margin` percent, and is no error by itself."""
    found = []
    for step in judgements:
        told = {place for one in step.findings if one.severity is Severity.ERROR for place in one.places}
        for name, now in step.metrics.items():
            was = base.of(name, now)
            if was is not None and _worse(was, now, margin) and not _told(now, told):
                found.append(_finding(scene, step, name, was, now, margin))
    return tuple(found)


def _worse(was: float, now: Metric, margin: float) -> bool:
    if now.more_is_better:
        return now.value < was * (1 - margin / 100)
    return now.value > was * (1 + margin / 100) and now.value - was > QUIET


def _told(now: Metric, places: Collection[Place]) -> bool:
    return any(place in places for place in now.places)


def _finding(scene: Scene, step: Judgement, name: str, was: float, now: Metric, margin: float) -> Finding:
    first = now.places[0] if now.places else Place()
    end = End(first.node, first.port)
    return finding(
        "worse-than-baseline",
        now.places,
        f"{name} is worse than in the baseline",
        found=f"{now.value:.4g} {now.unit}".replace(" /s", "/s"),
        wanted=f"{was:.4g} {now.unit}, give or take {margin:g}%".replace(" /s", "/s"),
        setting=step.step,
        help="see what changed since; `fabric verify --baseline` makes today's numbers the new ones",
        peer=scene.peer(end) if first.port else "",
        position=scene.where(end) if first.node else None,
        active=all(in_service(scene.inventory.nodes[one.node].spec.state) for one in now.places if one.node),
    )
