"""Faults from the field, each with the verdict that its source calls right (`shared/cases`).

Every case lies below its id as a small fabric whose ports are named as the platform here names them;
`PORTS` says which port stands for which. Verdict, node, setting and values come from the case file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric import platforms
from rdma_fabric.checker import build
from rdma_fabric.cli import main
from rdma_fabric.cli.common import load
from rdma_fabric.codec import dump_observations, load_observations
from rdma_fabric.plan.changes import Plan, Target, make_plan
from rdma_fabric.plan.disturb import Budget
from rdma_fabric.platforms._contract import Disturbs
from rdma_fabric.push.journal import Journal
from rdma_fabric.push.reach import Job, Outcome
from rdma_fabric.push.run import Push, RunSettings
from rdma_fabric.state import Observation

HERE = Path(__file__).resolve().parent
PORTS: Mapping[str, Mapping[str, str]] = {
    "B04": {"swp5": "Ethernet5/1"},
    "B22": {"Ethernet120": "Ethernet1/1"},
    "B32": {"Ethernet0": "Ethernet1/1", "Ethernet8": "Ethernet8/1"},
    "B44": {"ethernet1/1/9": "Ethernet9/1"},
}
REJECTED = ("B01", "B02", "B04", "B05", "B17", "B22", "B25", "B32", "B44", "B58")

pytestmark = pytest.mark.judge("cases")


def _expect(shared: Path, name: str) -> dict[str, Any]:
    file = next((shared / "cases").glob(f"{name}-*.yaml"))
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))["expect"]
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _ports(name: str, text: str) -> str:
    for old, new in PORTS.get(name, {}).items():
        text = re.sub(rf"\b{re.escape(old)}\b", new, text)
    return text


def _check(capsys: pytest.CaptureFixture[str], name: str, *more: str) -> tuple[int, dict[str, Any]]:
    observed = HERE / name / "observed.json"
    files = ["--observed", str(observed)] if observed.exists() else []
    code = main(["check", str(HERE / name), "--format", "json", *files, *more])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def _loud(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for one in report["findings"] if one["severity"] != "note"]


def _nodes(found: list[dict[str, Any]]) -> set[str]:
    return {place["node"] for one in found for place in one["places"]}


def _words(value: Any) -> set[str]:
    """Numbers and names of a value; absent values of sets are written "none"."""
    return set(re.findall(r"[A-Za-z0-9]+", " ".join(map(str, _list(value)))))


@pytest.mark.parametrize("name", REJECTED)
def test_the_right_node_is_named_and_no_other(
    name: str, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect = _expect(shared, name)
    code, report = _check(capsys, name)
    loud = _loud(report)
    nodes = set(_list(expect["node"]))
    assert code == 1
    assert expect["verdict"] in ("reject", "drift")
    if nodes == {"(intent)"}:
        assert _nodes(loud) == {""}
        assert [place["network"] for one in loud for place in one["places"]] == ["compute"]
    else:
        assert _nodes(loud) == nodes == set(report["rejected"])


@pytest.mark.parametrize("name", REJECTED)
def test_the_setting_is_named(name: str, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expect = _expect(shared, name)
    loud = _loud(_check(capsys, name)[1])
    shown = {
        setting
        for one in loud
        for place in one["places"]
        for setting in (f"{place['port']} {one['setting']}".strip(), one["setting"])
    }
    for setting in _list(expect["setting"]):
        assert _ports(name, setting) in shown


@pytest.mark.parametrize("name", REJECTED)
def test_one_finding_per_setting(name: str, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expect = _expect(shared, name)
    loud = _loud(_check(capsys, name)[1])
    settings = [(place["node"], place["port"], one["setting"]) for one in loud for place in one["places"]]
    assert len(settings) == len(set(settings))
    assert len({one["setting"] for one in loud}) == len(_list(expect["setting"]))


# B25 lists two settings: the first of found and wanted belongs to the first of them.
@pytest.mark.parametrize("name", [one for one in REJECTED if one != "B25"])
def test_found_and_wanted_are_the_cases(name: str, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expect = _expect(shared, name)
    loud = _loud(_check(capsys, name)[1])
    for key in ("found", "wanted"):
        for one in loud:
            text = _ports(name, str(one[key])).replace("KB", " KB")
            assert _words(expect[key]) <= _words(text), (key, one[key])


def test_values_of_a_firmware_that_owns_pfc(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expect = _expect(shared, "B25")
    loud = _loud(_check(capsys, "B25")[1])
    by_setting = {f"eth2 {one['setting']}": one for one in loud}
    for setting, found, wanted in zip(expect["setting"], expect["found"], expect["wanted"], strict=True):
        assert _words(found) <= _words(by_setting[setting]["found"])
        assert _words(wanted) <= _words(by_setting[setting]["wanted"])


def test_the_shorter_cable_is_not_named(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    must_not = [_ports("B32", one) for one in _expect(shared, "B32")["must_not_name"]]
    report = _check(capsys, "B32")[1]
    assert must_not == ["Ethernet8/1"]
    assert not any(port in json.dumps(_loud(report)) for port in must_not)


def test_the_intent_is_stopped_before_anything_is_compiled(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert main(["compile", str(HERE / "B58"), "-o", str(out)]) == 1
    assert not (out / "leaf01").exists()
    assert "ecn-inverted" in capsys.readouterr().err


# ---------------------------------------------------------------- B98: a default that is not shown

_NO_MTU_LINE = """\
interface Ethernet48/1
   no switchport
"""
_LIVE = {
    "interfaces": {
        "Ethernet48/1": {"mtu": 1500, "forwardingModel": "routed", "interfaceStatus": "connected"},
    }
}


def _seen(config: str, live: Mapping[str, Any]) -> tuple[Observation, Target]:
    """What the platform reads from these outputs, and what the node should be."""
    plan = load(HERE / "B98").plans["leaf51"]
    answers = dict.fromkeys(platforms.questions(plan.hardware), "")
    for question in answers:
        if "running-config" in question or "startup-config" in question:
            answers[question] = f"{config}end\n"
        elif question.startswith("show interfaces"):
            answers[question] = json.dumps(live)
    wanted = platforms.realize(plan.state, plan.hardware).state
    return platforms.parse(answers, plan.hardware), Target(wanted, plan.hardware)


def test_an_absent_line_is_the_default(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect = _expect(shared, "B98")
    assert (expect["verdict"], expect["node"]) == ("accept", None)
    seen, target = _seen(_NO_MTU_LINE, _LIVE)
    file = tmp_path / "observed.json"
    file.write_text(dump_observations({"leaf51": seen}), encoding="utf-8")
    code = main(["check", str(HERE / "B98"), "--strict", "--format", "json", "--observed", str(file)])
    assert code == 0
    assert _loud(json.loads(capsys.readouterr().out)) == []
    change = platforms.change(seen, target.wanted, target.hardware)
    assert change.empty and change.lines == () and change.differences == ()


def test_another_value_than_the_default_is_seen() -> None:
    live = json.loads(json.dumps(_LIVE).replace("1500", "9000"))
    seen, target = _seen(_NO_MTU_LINE.replace("   no", "   mtu 9000\n   no"), live)
    assert not platforms.change(seen, target.wanted, target.hardware).empty


# ---------------------------------------------------------------- B91: a node that fails keeps its row


class _Refusing:
    """leaf01 refuses the connection, every other node does as it is told."""

    def commit(self, jobs: Mapping[str, Job], run: str, timer_s: int) -> Mapping[str, Outcome]:
        return {name: self._outcome(job) for name, job in jobs.items()}

    @staticmethod
    def _outcome(job: Job) -> Outcome:
        if job.node == "leaf01":
            return Outcome(False, "connection refused", "connect")
        assert job.change.expected is not None
        return Outcome(True, observation=Observation(job.change.expected))

    def confirm(self, jobs: Mapping[str, Job], run: str) -> Mapping[str, Outcome]:
        return {name: Outcome(True) for name in jobs}

    def undo(self, jobs: Mapping[str, Job], run: str) -> Mapping[str, Outcome]:
        return {name: Outcome(True) for name in jobs}

    recover = undo


class _Silent:
    def wave(self, number: int, total: int, nodes: tuple[str, ...]) -> None: ...

    def node(self, name: str, step: str, detail: str = "") -> None: ...


def _plan() -> tuple[Plan, dict[str, Target], Mapping[str, Observation]]:
    resolved = load(HERE / "B91")
    judged = build(resolved)
    seen = load_observations((HERE / "B91" / "observed.json").read_text(encoding="utf-8"), "observed.json")
    targets = {name: Target(view.wanted, view.hw) for name, view in judged.views.items()}
    plan = make_plan(resolved.inventory, targets, seen, inputs="", budget=Budget(allow=Disturbs.REBOOT))
    return plan, targets, seen


def test_a_failed_node_keeps_its_row_to_the_end(shared: Path, tmp_path: Path) -> None:
    expect = _expect(shared, "B91")
    plan, targets, seen = _plan()
    journal = Journal(tmp_path / "run")
    rows = Push(plan, targets, seen, _Refusing(), journal, RunSettings("test"), _Silent()).execute()
    by_node = {row.node: row for row in rows}
    assert set(by_node) == {"leaf01", "leaf02"}
    assert not by_node[expect["node"]].good
    assert by_node[expect["node"]].status == "unreachable"
    assert by_node[expect["node"]].detail in expect["found"]
    assert by_node["leaf02"].status in ("applied", "skipped")
    assert not all(row.good for row in rows), "`apply` would exit 0"
