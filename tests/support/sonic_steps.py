"""What SONiC's steps make of a CONFIG_DB, without a simulator: loads, the patch, and deletions in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rdma_fabric.platforms._contract import Change, Put, Send, Step
from tests.judges.json_patch import apply_patch


def files(change: Change) -> dict[str, Any]:
    """Short name of every file that the change puts -> its JSON, or its lines."""
    found: dict[str, Any] = {}
    for step in change.stage:
        if isinstance(step, Put):
            name = step.path.rpartition("@.")[2]
            found[name] = json.loads(step.text or "") if name.endswith("json") else step.text
    return found


def sent(steps: Iterable[Step]) -> list[str]:
    """All lines of the steps."""
    return [line for step in steps if isinstance(step, Send) for line in step.lines]


def result_of(change: Change, rows: Mapping[str, Any]) -> dict[str, Any]:
    """The CONFIG_DB after the commit: loads, patch and deletions in the order of the steps."""
    made: dict[str, Any] = json.loads(json.dumps(rows))
    held = files(change)
    for line in sent(change.commit):
        name = line.rpartition("@.")[2]
        if " apply-patch /" in line:
            made = apply_patch(made, held[name])
        elif " config load " in line:
            merge(made, held[name])
        elif " DEL " in line:
            table, _, key = line.rpartition(" ")[2].strip("'").partition("|")
            made.get(table, {}).pop(key, None)
            if not made.get(table, {"x": 1}):
                del made[table]
    return made


def merge(rows: dict[str, Any], fragment: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """What `config load` does: fields are added and changed, never removed."""
    for table, entries in fragment.items():
        for key, row in entries.items():
            rows.setdefault(table, {}).setdefault(key, {}).update(row)
