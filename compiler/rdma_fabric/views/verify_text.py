"""The verdict of `verify` as text and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from rdma_fabric.findings import HEALTH, Finding, Place, Severity
from rdma_fabric.health.types import Health, Judgement, Unjudged
from rdma_fabric.inventory.ranges import collapse
from rdma_fabric.views.findings_json import finding_data
from rdma_fabric.views.findings_text import findings_text
from rdma_fabric.views.output import Output, count
from rdma_fabric.views.verdict import Source, Verdict


def verify_text(health: Health, out: Output) -> str:
    """Findings, then one line per step; notes and what could not be judged in detail with -v."""
    shown = [one for one in health.findings if out.verbose or one.severity > Severity.NOTE]
    lines = [findings_text(shown, out), ""] if shown else []
    width = max((len(one.step) for one in health.judgements), default=0)
    for step in health.judgements:
        lines += _step(step, health, width, out)
    lines.append(_last(health))
    return "\n".join(lines)


def _step(step: Judgement, health: Health, width: int, out: Output) -> list[str]:
    head = f"{step.step:<{width}}"
    if step.skipped:
        return [f"{head}  not judged: {step.skipped}"]
    found = [one for one in health.findings if _step_of(one) == step.step]
    text = f"{count(step.judged, _unit(step))}: {_counts(found) or _nothing(step)}"
    places = sum(len(one.places) for one in step.unjudged)
    if step.unjudged and not out.verbose:
        text += f"; {count(len(step.unjudged), 'thing')} at {count(places, 'place')} not judged (-v)"
    lines = [f"{head}  {text}"]
    if out.verbose:
        lines += [f"{'':<{width}}  not judged: {_unjudged(one)}" for one in step.unjudged]
    return lines


def _nothing(step: Judgement) -> str:
    return "sound" if step.judged else "nothing to judge"


def _unit(step: Judgement) -> str:
    return {"config": "node", "speed": "cable", "sm": "subnet", "paths": "path", "perftest": "pair"}.get(
        step.step, "run" if step.step == "nccl" else "port"
    )


def _unjudged(one: Unjudged) -> str:
    return f"{one.what}: {one.why}: {_places(one.places)}"


def _places(places: Iterable[Place]) -> str:
    """Nodes with their number of ports."""
    names = Counter(place.node or f"network {place.network}" for place in places)
    ports = sum(names.values())
    return collapse(names) + (f" ({count(ports, 'port')})" if ports > len(names) else "")


def _counts(found: Iterable[Finding]) -> str:
    """ "1 error, 2 warnings, 1 waived"."""
    numbers = Counter("waived" if one.waived else str(one.severity) for one in found)
    parts = [
        count(numbers[str(one)], str(one)) for one in sorted(Severity, reverse=True) if numbers[str(one)]
    ]
    return ", ".join([*parts, *([f"{numbers['waived']} waived"] if numbers["waived"] else [])])


def _step_of(one: Finding) -> str:
    return next((check.step for check in HEALTH if check.code == one.code), "")


def _last(health: Health) -> str:
    text = f"{count(health.nodes, 'node')} verified: {_counts(health.findings) or 'sound'}"
    return text + (f"; compared with the baseline of {health.baseline}" if health.baseline else "")


def verify_json(health: Health, passed: bool) -> str:
    """Version 1."""
    data = {
        "version": 1,
        "passed": passed,
        "nodes": health.nodes,
        "interval_s": health.interval_s,
        "baseline": health.baseline,
        "steps": [_step_data(one) for one in health.judgements],
        "findings": [finding_data(one) for one in health.findings],
    }
    return json.dumps(data, indent=1)


def _step_data(step: Judgement) -> dict[str, Any]:
    return {
        "step": step.step,
        "judged": step.judged,
        "skipped": step.skipped,
        "not_judged": [
            {
                "what": one.what,
                "why": one.why,
                "places": [{"node": p.node, "port": p.port, "network": p.network} for p in one.places],
            }
            for one in step.unjudged
        ],
        "metrics": {
            name: {"value": round(one.value, 3), "unit": one.unit} for name, one in step.metrics.items()
        },
    }


def verdict_of(health: Health, source: Source, fabric: str, strict: bool) -> Verdict:
    """The same for JUnit and markdown; what a step could not judge stands at its first check."""
    first = {check.step: check.code for check in reversed(HEALTH)}
    unjudged = tuple(
        (first[step.step], f"{one.what}: {one.why}", len(one.places))
        for step in health.judgements
        for one in step.unjudged
    )
    done = {step.step for step in health.judgements}
    checks = tuple(one for one in HEALTH if one.step in done)
    return Verdict(
        health.findings,
        source,
        fabric=fabric,
        nodes=health.nodes,
        not_judged=unjudged,
        strict=strict,
        command="verify",
        checks=checks,
    )
