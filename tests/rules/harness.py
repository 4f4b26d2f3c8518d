"""Rule cases: fragments laid over the sound fabric in `base/`, and what the checker must say about them.

A case file holds `pass` and `fail` lists. Each case may have
  base:     the folder of the sound fabric, instead of `base` (`base-ib`: InfiniBand)
  edit:     {file: {text: new text}}   exact replacements in a file of the base
  append:   {file: text}               text after the end of a file
  observed: {node: {running: {PORT: settings}, system: {...}, stored: {PORT: settings},
            pending: {PORT: settings}, speed: {PORT: Gbit/s}, notes: [...],
            neighbours: [[PORT, NODE, PORT]], buffers: [...]}}   as in `observe -o`; a DSCP map may be
            written {26: 0}
  today:    the date on which waivers are judged
`expect` (fail) lists every finding beyond those of the sound fabric (but for what platforms say about
values that they round or drop, where the case is not about that); fields that are left out are not compared.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rdma_fabric.checker import Report, build, check
from rdma_fabric.cli.common import load
from rdma_fabric.codec import load_observations
from rdma_fabric.findings import Finding, Severity

HERE = Path(__file__).resolve().parent
BASE = HERE / "base"
FILES = ("fabric.yaml", "hosts.yaml", "groups.yaml", "cables.csv", "guids.csv")
NEAREST = "FAB040"
TODAY = datetime.date(2026, 1, 15)


@dataclass(frozen=True)
class Case:
    """One fragment."""

    file: str
    kind: str
    name: str
    data: Mapping[str, Any]

    @property
    def expect(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.data.get("expect", [])
        return found

    @property
    def label(self) -> str:
        return f"{self.file}-{self.kind}-{self.name}"


def cases() -> Iterator[Case]:
    """All cases of all files."""
    for path in sorted(HERE.glob("FAB*.yaml")):
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert set(data) == {"pass", "fail"}, f"{path.name}: a case file holds pass and fail"
        for kind in ("pass", "fail"):
            for case in data[kind]:
                assert set(case) <= {"name", "base", "edit", "append", "observed", "today", "expect"}, case
                yield Case(path.stem, kind, case["name"], case)


def report(data: Mapping[str, Any], folder: Path) -> Report:
    """The verdict on the base fabric with the fragment laid over it; `folder` is written to."""
    base = HERE / data.get("base", BASE.name)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
        if not (base / name).exists():
            continue
        text = (base / name).read_text(encoding="utf-8")
        for old, new in data.get("edit", {}).get(name, {}).items():
            assert text.count(old) == 1, f"{name} holds {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        text += data.get("append", {}).get(name, "")
        (folder / name).write_text(text, encoding="utf-8")
    resolved = load(folder)
    nodes = {name: observation(one) for name, one in data.get("observed", {}).items()}
    seen = load_observations(json.dumps({"version": 1, "nodes": nodes}), "observed.json")
    today = data.get("today", TODAY)
    return check(build(resolved, seen), today)


def observation(data: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of one node from a case's shorthand."""
    layers = {"running", "system", "stored", "pending", "speed"}
    beside = ("notes", "neighbours", "buffers")
    assert set(data) <= {*layers, *beside}, data
    speeds = data.get("speed", {})
    found: dict[str, Any] = {"running": _layer(data.get("running", {}), speeds, data.get("system"))}
    for layer in ("stored", "pending"):
        if layer in data:
            found[layer] = _layer(data[layer], {}, None)
    found |= {name: data[name] for name in beside if name in data}
    return found


def _layer(ports: Mapping[str, Any], speeds: Mapping[str, int], system: Any) -> dict[str, Any]:
    names = dict.fromkeys([*ports, *speeds])
    rows = []
    for name in names:
        row: dict[str, Any] = {"name": name, "settings": _settings(ports.get(name, {}))}
        if name in speeds:
            row["speed_gbps"] = speeds[name]
        rows.append(row)
    return {"ports": rows} | ({"system": system} if system else {})


def _settings(data: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(data))
    table = found.get("qos", {}).get("dscp_to_priority")
    if isinstance(table, dict):
        base = {26: 3, 50: 6} | {int(key): value for key, value in table.items()}
        found["qos"]["dscp_to_priority"] = [base.get(dscp, 0) for dscp in range(64)]
    return found


def row(one: Finding) -> dict[str, Any]:
    """What cases compare."""
    return {
        "code": one.code,
        "severity": str(one.severity),
        "places": [str(place) for place in one.places],
        "line": one.position.line if one.position else 0,
        "file": Path(one.position.file).name if one.position else "",
        "setting": one.setting,
        "found": one.found,
        "wanted": one.wanted,
        "message": one.message,
        "peer": one.peer,
        "waived": one.waived,
    }


@cache
def _baseline(folder: Path, base: str) -> tuple[tuple[str, ...], ...]:
    return tuple(_identity(one) for one in report({"base": base}, folder).findings)


def _identity(one: Finding) -> tuple[str, ...]:
    return one.code, str(one.severity), one.setting, one.found, one.wanted


def news(found: Report, folder: Path, case: Case | None = None) -> list[Finding]:
    """Findings that the sound fabric does not have."""
    old = set(_baseline(folder, case.data.get("base", BASE.name) if case else BASE.name))
    about_platforms = case is not None and any(one["code"] == NEAREST for one in case.expect)
    return [
        one
        for one in found.findings
        if _identity(one) not in old
        and (about_platforms or one.code != NEAREST or one.severity is Severity.ERROR)
    ]


def agree(wanted: Mapping[str, Any], found: Finding) -> bool:
    """True when every field that the case names is as the finding has it."""
    shown = row(found)
    return all(str(shown[key]) == str(value) for key, value in wanted.items())
