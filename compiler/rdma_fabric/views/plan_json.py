"""Plans, rows and runs as JSON, version 1."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rdma_fabric.findings import Finding
from rdma_fabric.plan.base import BaseChange
from rdma_fabric.plan.changes import Plan
from rdma_fabric.plan.preview import Preview
from rdma_fabric.push.journal import RunRecord
from rdma_fabric.push.rows import Row
from rdma_fabric.settings import Deviation
from rdma_fabric.views.findings_json import finding_data


def _setting(one: Deviation) -> dict[str, str]:
    return {"port": one.port, "setting": one.title, "found": one.found, "wanted": one.wanted}


def plan_json(plan: Plan) -> str:
    """What apply would do."""
    nodes = [
        {
            "node": row.node,
            "status": row.status,
            "reason": row.reason,
            "wave": row.wave,
            "direction": row.direction,
            "disturbs": str(row.change.level) if row.change else "nothing",
            "felt_by": list(row.felt_by),
            "settings": [_setting(one) for one in row.deviations],
            "lines": list(row.change.lines) if row.change else [],
        }
        for row in plan.rows
    ]
    data = {"version": 1, "inputs": plan.inputs, "nodes": nodes, "waves": [list(wave) for wave in plan.waves]}
    return json.dumps(data, indent=1)


def row_data(row: Row) -> dict[str, Any]:
    """One run row."""
    return {
        "node": row.node,
        "status": row.status,
        "detail": row.detail,
        "wave": row.wave,
        "settings": [{"setting": a, "found": b, "wanted": c} for a, b, c in row.settings],
    }


def rows_json(run: str, rows: Sequence[Row]) -> str:
    """The result of a push."""
    return json.dumps({"version": 1, "run": run, "rows": [row_data(row) for row in rows]}, indent=1)


def base_json(
    changes: Sequence[BaseChange],
    revision: str,
    findings: Iterable[Finding],
    preview: Preview,
    new: Collection[Finding] = (),
) -> str:
    """The pull-request view; `new` are those of the findings that the base does not have."""
    told = list(findings)
    groups = [
        {
            "kind": one.kind,
            "nodes": list(one.nodes),
            "was": list(one.was),
            "settings": [_setting(setting) for setting in one.settings],
            "lines": list(one.lines),
        }
        for one in changes
    ]
    data = {
        "version": 1,
        "base": revision,
        "groups": groups,
        "waves": [list(wave) for wave in preview.waves],
        "disturbs": [
            {
                "nodes": list(one.nodes),
                "level": one.level,
                "what": one.what,
                "source": one.source,
                "felt": one.felt,
            }
            for one in preview.disturbed
        ],
        "unplanned": list(preview.unplanned),
        "tool": {"base": preview.tool[0], "now": preview.tool[1]},
        "findings": [finding_data(one) for one in told],
        "new": [index for index, one in enumerate(told) if one in new],
    }
    return json.dumps(data, indent=1)


def runs_json(records: Sequence[RunRecord]) -> str:
    """Runs with their nodes."""
    rows = [
        {
            "run": one.run,
            "kind": one.kind,
            "started": one.started,
            "ended": one.ended,
            "undoes": one.undoes,
            "lab": one.lab,
            "unfinished": one.unfinished,
            "recovered_by": one.recovered_by,
            "ansible": [{"hosts": play.hosts, "changed": play.changed} for play in one.plays],
            "nodes": {
                name: {
                    "phase": node.phase,
                    "status": node.status,
                    "detail": node.detail,
                    "wave": node.wave,
                    "settings": [{"setting": a, "found": b, "wanted": c} for a, b, c in node.settings],
                }
                for name, node in one.nodes.items()
            },
        }
        for one in records
    ]
    return json.dumps({"version": 1, "runs": rows}, indent=1)
