"""A plan as a file for `apply --plan`: what was decided, bound to the inputs and to what was seen."""

from __future__ import annotations

import json
from dataclasses import dataclass

from rdma_fabric.findings import InputError, Position, input_finding
from rdma_fabric.plan.changes import Plan

VERSION = 1


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """What a plan file says: digests, and the exact lines per node."""

    inputs: str
    seen: dict[str, str]
    lines: dict[str, tuple[str, ...]]


def dump_plan(plan: Plan) -> str:
    """The plan as stable JSON."""
    data = {
        "version": VERSION,
        "inputs": plan.inputs,
        "seen": dict(sorted(plan.seen.items())),
        "nodes": {
            row.node: {
                "status": row.status,
                "wave": row.wave,
                "reason": row.reason,
                "disturbs": str(row.change.level) if row.change else "nothing",
                "settings": [
                    {"port": one.port, "setting": one.title, "found": one.found, "wanted": one.wanted}
                    for one in row.deviations
                ],
                "lines": list(row.change.lines) if row.change else [],
            }
            for row in plan.rows
        },
    }
    return json.dumps(data, indent=1) + "\n"


def load_plan(text: str, file: str) -> SavedPlan:
    """What a plan file holds; InputError when it is none."""
    try:
        data = json.loads(text)
        if data["version"] != VERSION:
            raise ValueError(f"version {data['version']} is not {VERSION}")
        nodes = {str(name): one for name, one in data["nodes"].items()}
        lines = {name: tuple(one["lines"]) for name, one in nodes.items() if one["status"] == "change"}
        return SavedPlan(str(data["inputs"]), dict(data["seen"]), lines)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        at = Position(file, 0, 0)
        help = "give a file that `fabric diff -o` wrote"
        raise InputError([input_finding("file", f"is not a plan ({error})", at, help)]) from None


def stale(saved: SavedPlan, plan: Plan) -> tuple[str, ...]:
    """Why the saved plan may not be carried out any more; empty when it still holds."""
    reasons = []
    if saved.inputs != plan.inputs:
        reasons.append("the intent or inventory changed since the plan was written")
    now = {row.node: row.change.lines for row in plan.rows if row.status == "change" and row.change}
    for name in sorted({*saved.lines, *now}):
        if saved.seen.get(name) != plan.seen.get(name):
            reasons.append(f"{name} changed since the plan was written")
        elif saved.lines.get(name) != now.get(name):
            reasons.append(f"{name} would get other lines than the plan holds")
    return tuple(reasons)
