"""A plan as a file for `apply --plan`: what was decided, bound to the inputs and to what was seen."""

from __future__ import annotations

import json
from dataclasses import dataclass

from rdma_fabric.findings import InputError, Position, input_finding, natural
from rdma_fabric.plan.changes import Plan

VERSION = 1


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """What a plan file says: digests, and per node to push its wave and its exact lines."""

    inputs: str
    seen: dict[str, str]
    changes: dict[str, tuple[int, tuple[str, ...]]]


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
        changes = {
            name: (int(one["wave"]), tuple(one["lines"]))
            for name, one in nodes.items()
            if one["status"] == "change"
        }
        return SavedPlan(str(data["inputs"]), dict(data["seen"]), changes)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        at = Position(file, 0, 0)
        help = "give a file that `fabric diff -o` wrote"
        raise InputError([input_finding("file", f"is not a plan ({error})", at, help)]) from None


def stale(saved: SavedPlan, plan: Plan) -> tuple[str, ...]:
    """Why the saved plan may not be carried out any more; empty when it still holds."""
    reasons = []
    if saved.inputs != plan.inputs:
        reasons.append("the intent or inventory changed since the plan was written")
    now = {
        row.node: (row.wave, row.change.lines) for row in plan.rows if row.status == "change" and row.change
    }
    for name in sorted({*saved.changes, *now}, key=natural):
        before, after = saved.changes.get(name), now.get(name)
        if saved.seen.get(name) != plan.seen.get(name):
            reasons.append(f"{name} changed since the plan was written")
        elif after is None:
            row = plan.row(name)
            why = f": {row.reason}" if row and row.status == "refused" else ""
            reasons.append(f"{name} would be left alone now{why}")
        elif before is None:
            reasons.append(f"{name} would be changed too")
        elif before[1] != after[1]:
            reasons.append(f"{name} would get other lines than the plan holds")
        elif before[0] != after[0]:
            reasons.append(f"{name} would go in wave {after[0]}, not {before[0]}")
    return tuple(reasons)
