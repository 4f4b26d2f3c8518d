"""Findings as JSON, version 1 (docs/formats.md, docs/schemas/findings.json)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rdma_fabric.findings import Finding


def finding_data(one: Finding) -> dict[str, Any]:
    """One finding as plain data; empty fields stay, so that consumers need no defaults."""
    at = one.position
    return {
        "code": one.code,
        "name": one.name,
        "severity": str(one.severity),
        "message": one.message,
        "places": [
            {"node": p.node, "port": p.port, "link": p.link, "network": p.network} for p in one.places
        ],
        "setting": one.setting,
        "found": one.found,
        "wanted": one.wanted,
        "peer": one.peer,
        "reason": one.reason,
        "help": one.help,
        "waived": one.waived,
        "position": {"file": at.file, "line": at.line, "column": at.column} if at else None,
    }


def report_json(
    found: Iterable[Finding],
    *,
    rejected: Iterable[str] = (),
    affected: Mapping[str, tuple[str, ...]] | None = None,
    not_judged: Iterable[tuple[str, str, int]] = (),
    nodes: int = 0,
) -> str:
    """The whole verdict."""
    data = {
        "version": 1,
        "nodes": nodes,
        "findings": [finding_data(one) for one in found],
        "rejected": list(rejected),
        "affected": {name: list(by) for name, by in (affected or {}).items()},
        "not_judged": [{"code": code, "reason": why, "count": count} for code, why, count in not_judged],
    }
    return json.dumps(data, indent=1)
