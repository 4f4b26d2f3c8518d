"""The steps in their order, on what was read; waivers of the intent; the verdict."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping

from rdma_fabric.checker import Judged
from rdma_fabric.checker.waivers import waive
from rdma_fabric.drift import NodeDrift
from rdma_fabric.findings import Finding, Place, Severity
from rdma_fabric.health import counters, standing
from rdma_fabric.health.types import STEPS, Health, Judgement, Scene, Step, finding, in_service
from rdma_fabric.observe import Sign


def scene_of(
    judged: Judged, names: Iterable[str], first: Mapping[str, Sign], second: Mapping[str, Sign]
) -> Scene:
    """What the steps look at."""
    return Scene(judged, tuple(names), first, second, judged.inventory.peers())


def judge(scene: Scene, drifts: Iterable[NodeDrift], steps: Collection[Step]) -> tuple[Judgement, ...]:
    """The steps that need nothing but the two reads, in order; managers are judged before configuration."""
    marks = scene.judged.resolved.intent.verify
    sm = standing.managers(scene)
    made: dict[Step, Callable[[], Judgement]] = {
        "counters": lambda: counters.judge(scene, marks.pause),
        "config": lambda: standing.config(scene, drifts, sm),
        "speed": lambda: standing.speed(scene),
        "sm": lambda: sm,
        "mtu": lambda: standing.rdma_mtu(scene),
    }
    return tuple(made[step]() for step in STEPS if step in made and step in steps)


def unread(judged: Judged, failures: Mapping[str, str]) -> tuple[Finding, ...]:
    """Nodes that did not answer, one finding per reason."""
    by_reason: dict[tuple[str, bool], list[str]] = {}
    for name, why in failures.items():
        active = in_service(judged.inventory.nodes[name].spec.state)
        by_reason.setdefault((why, active), []).append(name)
    return tuple(
        finding(
            "node-not-read",
            map(Place, names),
            f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: not read",
            found=why,
            wanted="an answer",
            help="see whether it runs and can be reached: `fabric observe`",
            setting="reading",
            position=judged.inventory.nodes[names[0]].position,
            active=active,
        )
        for (why, active), names in by_reason.items()
    )


def verdict(
    judged: Judged,
    judgements: Iterable[Judgement],
    others: Iterable[Finding],
    *,
    today: datetime.date,
    nodes: int,
    interval_s: float,
    baseline: str = "",
) -> Health:
    """All findings in the order of the steps, the worst of a step first; waived ones are marked."""
    made = tuple(judgements)
    told = [*others, *(one for step in made for one in _sorted(step.findings))]
    found = waive(told, judged.resolved, today)
    return Health(made, tuple(found), nodes, interval_s, baseline)


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda one: (-one.severity, one.sort_key()))


def fails(health: Health, strict: bool) -> bool:
    """True when a finding counts: errors, with `strict` warnings too."""
    least = Severity.WARNING if strict else Severity.ERROR
    return any(one.severity >= least and not one.waived for one in health.findings)
