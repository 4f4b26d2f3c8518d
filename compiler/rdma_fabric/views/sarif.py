"""Findings as SARIF 2.1.0 (OASIS Standard, errata 01), for code scanning and editors.

The output holds no time and no absolute path: two runs over the same input give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from rdma_fabric import __version__
from rdma_fabric.checker.registry import Documented
from rdma_fabric.findings import INPUT_CODES, Finding, Place, Position
from rdma_fabric.views.verdict import Verdict, details, sections

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE: Final = "%SRCROOT%"
"""uriBaseId of every path; code scanning puts the checkout's root in its place."""
FINGERPRINT: Final = "fabricFinding/v1"
_MODELS: Final = ("Wrong", "Right")
"""Sections of a rule's documentation that are YAML."""

_INPUT: Final = {
    "file": "An input file cannot be read, or holds characters that nobody sees",
    "yaml-syntax": "The file is not the YAML that this tool reads",
    "yaml-duplicate-key": "A key stands twice in one map",
    "yaml-implicit-type": "YAML readers disagree on what this value is",
    "schema": "A value or key does not fit the schema",
    "unknown-key": "Nobody reads this key",
    "csv": "A line of the cable list cannot be used",
    "reference": "A name that nothing defines",
}


def report_sarif(verdict: Verdict) -> str:
    """The whole verdict as one run."""
    rules = _rules(verdict)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    category = f"fabric-check/{verdict.source.folder}/" if verdict.source.folder else "fabric-check/"
    run = {
        "tool": {"driver": {"name": "fabric", "semanticVersion": __version__, "rules": rules}},
        "automationDetails": {"id": category},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(verdict, index)],
        "results": list(_results(verdict, index)),
        "properties": {
            "fabric": verdict.fabric,
            "nodes": verdict.nodes,
            "rejected": list(verdict.rejected),
            "affected": {name: list(by) for name, by in verdict.affected.items()},
        },
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


# -- rules


def _rules(verdict: Verdict) -> list[dict[str, Any]]:
    """All rules of the checker, after those for input files that were found broken."""
    used = {one.code: one for one in verdict.findings}
    given = [_rule(one) for one in verdict.rules]
    known = {rule["id"] for rule in given}
    return [_input_rule(one) for code, one in sorted(used.items()) if code not in known] + given


def _input_rule(one: Finding) -> dict[str, Any]:
    names = {code: name for name, code in INPUT_CODES.items()}
    text = _INPUT.get(names.get(one.code, ""), one.name)
    return {
        "id": one.code,
        "name": one.name,
        "shortDescription": {"text": text},
        "fullDescription": {"text": f"{text}."},
        "help": {"text": "Each result says what to write instead."},
        "defaultConfiguration": {"level": str(one.severity)},
        "properties": {"tags": ["input"]},
    }


def _rule(one: Documented) -> dict[str, Any]:
    parts = sections(one.doc)
    rule = one.rule
    full = " ".join(parts.get("What it checks", parts[""]).split())
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": parts[""]},
        "fullDescription": {"text": full},
        "help": {"text": one.doc.strip(), "markdown": _help(parts)},
        "defaultConfiguration": {"level": str(rule.severity)},
        "properties": {"tags": [rule.family], "since": rule.since},
    }


def _help(parts: dict[str, str]) -> str:
    lines = [parts[""]]
    for heading, text in parts.items():
        if heading:
            body = f"```yaml\n{text}\n```" if heading in _MODELS else text
            lines.append(f"**{heading}**\n\n{body}")
    return "\n\n".join(lines)


# -- results


def _results(verdict: Verdict, index: dict[str, int]) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for one in verdict.findings:
        digest = _fingerprint(one)
        seen[digest] += 1
        yield {
            "ruleId": one.code,
            "ruleIndex": index[one.code],
            "level": str(one.severity),
            "message": {"text": _message(one)},
            "locations": [_location(one, verdict)],
            "partialFingerprints": {FINGERPRINT: f"{digest}:{seen[digest]}"},
            # An empty list says "not suppressed"; without the key nobody knows (SARIF 3.27.23).
            "suppressions": _suppressions(one),
        }


def _suppressions(one: Finding) -> list[dict[str, str]]:
    """The waiver, with its end date and reason; external, since it stands in the intent, not at the place."""
    if not one.waived:
        return []
    return [{"kind": "external", "status": "accepted", "justification": f"waived {one.waived}"}]


def _message(one: Finding) -> str:
    """The headline first (viewers cut), then one line per fact; no `](`, which would be a link."""
    lines = [one.message, *(f"{word}: {text}" for word, text in details(one))]
    return "\n".join(lines).replace("](", "] (")


def _fingerprint(one: Finding) -> str:
    """Equal for the same fault at the same places, wherever its line moved and whatever the value is now."""
    places = sorted(f"{p.node}|{p.port}|{p.link}|{p.network}" for p in one.places)
    words = [one.code, one.setting, *places] if places else [one.code, one.setting, one.message]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:32]


def _location(one: Finding, verdict: Verdict) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": _physical(one.position, verdict)}
    logical = [found for place in one.places if (found := _logical(place))]
    if logical:
        location["logicalLocations"] = logical
    return location


def _physical(position: Position | None, verdict: Verdict) -> dict[str, Any]:
    """The file and its line; without one the top of the intent, since viewers demand a line."""
    from urllib.parse import quote

    path = verdict.source.path(position.file) if position and not position.file.startswith("--") else ""
    region = {"startLine": 1}
    if position and position.line and path:
        region = {"startLine": position.line, "startColumn": position.column}
    uri = quote(path or verdict.source.intent)
    return {"artifactLocation": {"uri": uri, "uriBaseId": BASE}, "region": region}


def _logical(place: Place) -> dict[str, str] | None:
    """Node, port, cable or network; the kinds are ours, as the standard allows (3.33.7)."""
    if place.node and place.port:
        return {
            "name": place.port,
            "fullyQualifiedName": f"{place.node}/{place.port}",
            "kind": "port",
        }
    for kind in ("node", "link", "network"):
        name = getattr(place, kind)
        if name:
            return {"name": name, "fullyQualifiedName": name, "kind": kind}
    return None


# -- the run


def _invocation(verdict: Verdict, index: dict[str, int]) -> dict[str, Any]:
    notes = [
        {
            "level": "note",
            "message": {"text": f"not judged for {count} kinds of place: {why}"},
            "associatedRule": {"id": code, "index": index[code]},
        }
        for code, why, count in verdict.not_judged
        if code in index
    ]
    return {"executionSuccessful": verdict.loaded, "toolExecutionNotifications": notes}
