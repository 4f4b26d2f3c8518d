"""The JSON formats: real outputs against docs/schemas, which say no more and no less than the code."""

from __future__ import annotations

import json
import shutil
import subprocess
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry, Resource

from rdma_fabric import platforms
from rdma_fabric.admit import Unread, Verdict, Word
from rdma_fabric.cli import main
from rdma_fabric.codec import dump_observations, load_observations
from rdma_fabric.drift import Drift, Layer, NodeDrift
from rdma_fabric.findings import Finding, Place, Severity
from rdma_fabric.health.types import LOADS, STEPS, Health, Judgement, Metric, Unjudged
from rdma_fabric.plan.base import BaseChange
from rdma_fabric.plan.changes import Plan, PlanRow
from rdma_fabric.plan.changes import Status as PlanStatus
from rdma_fabric.plan.file import dump_plan, load_plan
from rdma_fabric.plan.preview import Disturbed, Preview
from rdma_fabric.plan.waves import Direction
from rdma_fabric.platforms._contract import Change, Disturbance, Disturbs
from rdma_fabric.push.journal import Phase, replay
from rdma_fabric.push.rows import Row
from rdma_fabric.push.rows import Status as PushStatus
from rdma_fabric.settings import Deviation
from rdma_fabric.state import (
    NOT_READ,
    UNKNOWN,
    Amount,
    Buffer,
    ClassState,
    Ecn,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    SystemState,
)
from rdma_fabric.views.admit_text import admit_json
from rdma_fabric.views.drift_text import drift_json
from rdma_fabric.views.plan_json import base_json, plan_json, rows_json, runs_json
from rdma_fabric.views.verify_text import verify_json
from tests.support.golden import Golden
from tests.support.state_schema import state_schema

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "inventory/demo"
SCHEMAS = {path.stem: json.loads(path.read_text("utf-8")) for path in (ROOT / "docs/schemas").glob("*.json")}
REGISTRY: Registry[Any] = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()
)
SHA = "0123456789abcdef" * 4
TROUBLE = Deviation("eth2", "mtu.ip", "IP MTU", "1500", "9000", False, ("ports.eth2.mtu.ip",))


def _valid(name: str, text: str) -> Any:
    """The data of `text`, which must be valid under a schema."""
    data = json.loads(text)
    Draft202012Validator(SCHEMAS[name], registry=REGISTRY).validate(data)
    return data


def _defs(name: str) -> Any:
    return SCHEMAS["common"]["$defs"][name]["enum"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])


def test_state_schema_is_made_from_the_state(golden: Golden) -> None:
    golden.at("..", "..", "docs", "schemas").text("state.json", state_schema())


def test_words_of_the_schemas_are_those_of_the_code() -> None:
    assert _defs("push_status") == list(typing.get_args(PushStatus))
    assert _defs("plan_status") == list(typing.get_args(PlanStatus))
    assert _defs("disturbs") == [str(one) for one in Disturbs]
    finding = SCHEMAS["common"]["$defs"]["finding"]["properties"]
    assert finding["severity"]["enum"] == [str(one) for one in Severity]
    plan = SCHEMAS["plan"]["properties"]["nodes"]["items"]["properties"]
    assert plan["direction"]["enum"] == list(typing.get_args(Direction))
    runs = SCHEMAS["runs"]["properties"]["runs"]["items"]["properties"]
    assert runs["nodes"]["additionalProperties"]["properties"]["phase"]["enum"] == list(
        typing.get_args(Phase)
    )


def test_the_page_names_every_schema() -> None:
    page = (ROOT / "docs/formats.md").read_text("utf-8")
    assert {name for name in SCHEMAS if f"(schemas/{name}.json)" in page} == set(SCHEMAS)


# -- commands without devices


def test_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(DEMO), "--format", "json"]) == 0
    assert _valid("findings", capsys.readouterr().out)["nodes"] == 14
    assert main(["check", str(DEMO), "--format", "json", "--set", "mtu.host=1500"]) == 1
    data = _valid("findings", capsys.readouterr().out)
    assert data["rejected"]
    assert data["affected"] is not None


def test_check_of_refused_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", str(tmp_path), "--format", "json"]) == 2
    assert len(_valid("findings", capsys.readouterr().out)["findings"]) == 3


def test_check_of_unread_nodes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ports = (PortState("eth0", settings=NOT_READ, speed_gbps=UNKNOWN),)
    file = tmp_path / "observed.json"
    file.write_text(dump_observations({"gpu01": Observation(NodeState(ports=ports))}))
    main(["check", str(DEMO), "--format", "json", "--observed", str(file)])
    assert _valid("findings", capsys.readouterr().out)["not_judged"]


def test_compile_and_manifest(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["compile", str(DEMO), "-o", str(tmp_path / "out"), "--format", "json"])
    data = _valid("compile", capsys.readouterr().out)
    manifest = _valid("manifest", Path(data["manifest"]).read_text("utf-8"))
    assert len(manifest["nodes"]) == data["nodes"] > 0 and data["bundles"] == []


def test_bundles(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["compile", str(DEMO), "-o", str(tmp_path / "out"), "--bundle", "--format", "json"])
    data = _valid("compile", capsys.readouterr().out)
    index = _valid("bundles", (tmp_path / "out" / "bundles" / "index.json").read_text("utf-8"))
    assert sorted(index["nodes"]) == sorted(data["bundles"]) != []


def test_base(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "demo")

    def git(*words: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.net")
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "base")
    intent = tmp_path / "demo/fabric.yaml"
    intent.write_text(intent.read_text().replace("host: 9000", "host: 8000"))
    assert main(["diff", str(tmp_path / "demo"), "--base", "HEAD", "--format", "json"]) == 0
    data = _valid("base", capsys.readouterr().out)
    assert [group["kind"] for group in data["groups"]] == ["changed"]
    assert data["groups"][0]["settings"]


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["FAB021"]):
        assert main(["explain", *words, "--format", "json"]) == 0
        _valid("rules", capsys.readouterr().out)


# -- commands with devices: their views on small values


def _plan() -> Plan:
    disturbs = (Disturbance(Disturbs.PORT_BOUNCE, ("Ethernet1/1",), "the port restarts", "experience"),)
    change = Change(lines=("mtu 9214",), disturbs=disturbs)
    rows = (
        PlanRow("gpu07", "change", "", change, (TROUBLE,), "grow", ("leaf03",), 1, "cli"),
        *(PlanRow(f"n{number}", status, "why") for number, status in enumerate(typing.get_args(PlanStatus))),
    )
    return Plan(SHA, {"gpu07": SHA}, rows, (("gpu07",),))


def test_plan_and_plan_file() -> None:
    _valid("plan", plan_json(_plan()))
    text = dump_plan(_plan())
    _valid("plan-file", text)
    assert load_plan(text, "plan.json").inputs == SHA


def test_rows() -> None:
    rows = [
        Row(f"n{number}", status, "why", 1, (("eth2 IP MTU", "1500", "9000"),))
        for number, status in enumerate(typing.get_args(PushStatus))
    ]
    assert len(_valid("rows", rows_json("k3x9ab", rows))["rows"]) == len(rows)


def test_runs() -> None:
    start = {
        "event": "start",
        "at": "2026-10-01T10:00:00+00:00",
        "run": "k3x9ab",
        "kind": "apply",
        "inputs": SHA,
    }
    open_ = {"event": "node", "node": "gpu07", "phase": "committing", "wave": 1, "before": {}, "settings": []}
    done = {
        "event": "node",
        "node": "gpu08",
        "phase": "done",
        "status": "applied",
        "settings": [["eth2 IP MTU", "1500", "9000"]],
    }
    play = {"event": "ansible", "at": "then", "hosts": 2, "changed": 1}
    records = [
        replay([start, open_]),
        replay(
            [start | {"kind": "rollback", "undoes": "k3x9ab"}, play, done, {"event": "end", "at": "later"}]
        ),
    ]
    _valid("runs", runs_json(records))
    _valid("runs", runs_json([]))


def test_drift() -> None:
    drifts = tuple(Drift(layer, TROUBLE) for layer in typing.get_args(Layer))
    rows = [
        NodeDrift("gpu07", "active", drifts, (TROUBLE,), ("odd",)),
        NodeDrift("gpu08", "planned", failure="refused"),
        NodeDrift("gpu09", "retired", skipped="retired"),
    ]
    assert _valid("drift", drift_json(rows))["clean"] is False


def test_verify() -> None:
    finding = Finding(
        "FAB102", "frame-errors", Severity.ERROR, (Place("gpu07", "eth2"),), "counters", "crc +5", "none",
        "", None, "", "gpu07 eth2: broken frames arrive",
    )  # fmt: skip
    gap = Unjudged("counters", "fec", "the device shows no such counter", (Place("gpu07", "eth2"),))
    metrics = {"gpu07 eth2 pause-tx": Metric(1.25, "/s")}
    step = Judgement("counters", 4, (finding,), (gap,), metrics)
    data = _valid("verify", verify_json(Health((step,), (finding,), 1, 10.0), passed=False))
    assert data["passed"] is False
    items = SCHEMAS["verify"]["properties"]["steps"]["items"]["properties"]
    assert items["step"]["enum"] == [*STEPS, *LOADS]


def test_admit() -> None:
    finding = Finding(
        "FAB030", "differs-from-intent", Severity.ERROR, (Place("gpu07", "eth2"),), "mtu.ip", "1500", "9000",
        "", None, "", "gpu07 eth2: mtu differs from the intent",
    )  # fmt: skip
    rows = [
        Verdict("gpu07", ("leaf03",), (finding,), ("eth1",), (Unread("leaf03", "", "refused"),)),
        Verdict("gpu08", ()),
    ]
    found = _valid("admit", admit_json(rows))
    assert found["admitted"] is False
    assert [one["verdict"] for one in found["nodes"]] == ["refuse", "admit"]
    words = SCHEMAS["admit"]["properties"]["nodes"]["items"]["properties"]["verdict"]["enum"]
    assert set(words) == set(typing.get_args(Word))


def test_base_without_changes() -> None:
    _valid("base", base_json([], "HEAD", [], Preview()))
    look = Preview(
        (("leaf01",),),
        (Disturbed(("leaf01",), "loss", "x", "experience", True),),
        ("0.1", "0.2"),
        ("leaf03",),
    )
    _valid("base", base_json([BaseChange("removed", ("gpu09",))], "HEAD~1", [], look))


# -- states


def test_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "leaf01", "random-detect", str(DEMO), "--format", "json"]) == 0
    found = _valid("trace", capsys.readouterr().out)["found"]
    assert any(one["setting"] == "ecn.400G.kmin" for one in found[0]["lines"][0]["causes"])


def _observations() -> dict[str, Observation]:
    """Realized states of the example, a node of which nothing could be read, and one with every odd value."""
    from rdma_fabric.cli import common

    plans = common.load(DEMO).plans
    found = {
        name: Observation(platforms.realize(plan.state, plan.hardware).state) for name, plan in plans.items()
    }
    found["unread"] = Observation(
        NodeState(ports=(PortState("eth0", settings=NOT_READ, speed_gbps=UNKNOWN),))
    )
    classes = (
        ClassState(ecn=None, headroom=None, share=None),
        ClassState(ecn=Ecn(Amount(1), Amount(2, "percent"), 0.5, (("red", Amount(1), Amount(2), 1.0),))),
        ClassState(share=Share("strict", 0, None), headroom=Amount(7, "cells"), queue=3),
        *(ClassState(),) * 5,
    )
    system = SystemState((("net.a", "@x"), ("net.b", UNKNOWN)), (("ib_core", True),), owners=("lldpad",))
    ports = (PortState("eth0", "vf", PortSettings(qos=QosState(classes=classes)), 400),)
    found["odd"] = Observation(
        NodeState(system, ports),
        NodeState(),
        NodeState(),
        False,
        ("a note",),
        (("eth0", "leaf01", "Ethernet1/1"),),
        (("model", "x"),),
        SHA,
        (Buffer("eth0", 3, 10_000, 8_000, UNKNOWN, 9_216, "@lossless"),),
    )
    return found


def test_states() -> None:
    found = _observations()
    text = dump_observations(found)
    _valid("state", text)
    assert load_observations(text, "x.json") == found


HAND_WRITTEN = '{"version": 1, "nodes": {"gpu01": {"running": {"ports": [%s]}}}}'


@pytest.mark.parametrize(
    "port",
    [
        '{"name": "eth0"}',
        '{"name": "eth0", "settings": {"mtu": {"ip": 9000}}}',
        '{"name": "eth0", "settings": {"qos": {"classes": {"3": {"pfc_tx": true}}, "trust": "@unknown"}}}',
    ],
)
def test_small_states_by_hand(port: str) -> None:
    text = HAND_WRITTEN % port
    _valid("state", text)
    assert load_observations(text, "x.json")


@pytest.mark.parametrize(
    "port",
    [
        "{}",
        '{"name": 1}',
        '{"name": "@eth0"}',
        '{"name": "eth0", "mtu": 9000}',
        '{"name": "eth0", "settings": {"mtu": {"ip": "9000"}}}',
        '{"name": "eth0", "settings": {"qos": {"trust": "dhcp"}}}',
        '{"name": "eth0", "settings": {"qos": {"classes": {"8": {}}}}}',
        '{"name": "eth0", "settings": {"qos": {"dscp_to_priority": [1]}}}',
        '{"name": "eth0", "kind": "@unknown"}',
    ],
)
def test_schema_and_reader_refuse_alike(port: str) -> None:
    from rdma_fabric.findings import InputError

    text = HAND_WRITTEN % port
    with pytest.raises(ValidationError):
        _valid("state", text)
    with pytest.raises(InputError):
        load_observations(text, "x.json")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plan", lambda: plan_json(_plan())),
        ("plan-file", lambda: dump_plan(_plan())),
        ("rows", lambda: rows_json("k3x9ab", [])),
        ("runs", lambda: runs_json([])),
        ("drift", lambda: drift_json([])),
        ("admit", lambda: admit_json([])),
        ("verify", lambda: verify_json(Health((), (), 0, 0.0), passed=True)),
        ("base", lambda: base_json([], "HEAD", [], Preview())),
    ],
)
def test_schemas_refuse_other_versions_and_unknown_keys(name: str, text: Callable[[], str]) -> None:
    data = json.loads(text())
    for broken in (
        data | {"version": 2},
        data | {"extra": 1},
        {k: v for k, v in data.items() if k != "version"},
    ):
        with pytest.raises(ValidationError):
            _valid(name, json.dumps(broken))
