"""Commands that read, save and compare, on the lab: observe, check, diff, plans, drift, limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.cli import pushing
from rdma_fabric.lab import fabric as lab
from tests.support.fabrics import Fabric, lab_up, make
from tests.support.switches import TYPED

pytestmark = pytest.mark.lab

EOS, SONIC, CUMULUS = "leaf01", "leaf03", "leaf04"
SWITCHES = {"leaf01": "arista_eos", "leaf02": "arista_eos", "leaf03": "sonic", "leaf04": "cumulus"}
CABLES = (
    "leaf01,Ethernet4/1,leaf02,Ethernet4/1,5\n"
    "leaf01,Ethernet3/1,leaf03,Ethernet24,5\n"
    "leaf02,Ethernet3/1,leaf04,swp4,5\n"
)
FREE = ("--allow", "port-bounce")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    made = make(tmp_path_factory.mktemp("commands"), SWITCHES, cables=CABLES, state="active")
    with lab_up(made):
        made.apply(*FREE, status=0)
        yield made


@pytest.fixture
def spoiled(fabric: Fabric) -> Iterator[str]:
    fabric.somebody(SONIC, *TYPED["sonic"].spoil)
    yield SONIC
    for name in SWITCHES:
        lab.mend(fabric.folder, name)
    fabric.apply(*FREE, status=0)


def test_observed_states_are_judged_as_live_ones(fabric: Fabric, spoiled: str, tmp_path: Path) -> None:
    file = tmp_path / "states.json"
    fabric.run("observe", "--lab", "-o", str(file), status=0)
    again = tmp_path / "again.json"
    fabric.run("observe", "--lab", "-o", str(again), status=0)
    assert [*states(file)] == sorted(SWITCHES) == [*states(again)]
    live = fabric.json("check", "--live")
    saved = fabric.run("check", "--observed", str(file), "--format", "json")
    assert saved.data == live.data and saved.status == live.status == 1
    assert live.data["rejected"] == [spoiled]


def states(file: Path) -> dict[str, Any]:
    data = json.loads(file.read_text(encoding="utf-8"))
    assert data["version"] == 1
    nodes: dict[str, Any] = data["nodes"]
    return nodes


def test_a_node_that_cannot_be_observed(fabric: Fabric, tmp_path: Path) -> None:
    with fabric.broken(EOS, "unreachable"):
        some = fabric.run("observe", "--lab", "-o", str(tmp_path / "some.json"), status=1)
        assert EOS in some.err and "3 of 4" in some.err
        fabric.run("observe", "--lab", "-o", "-", "--limit", EOS, status=2)
        assert EOS in fabric.json("check", "--live", status=1).err


def test_a_plan_that_is_carried_out(fabric: Fabric, spoiled: str, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    fabric.run("diff", "--lab", "-o", plan, *FREE, status=0)
    fabric.json("diff", "--exit-code", status=1)
    done = fabric.apply("--plan", plan, *FREE, status=0)
    assert {name for name, status in done.statuses.items() if status != "unchanged"} == {spoiled}
    fabric.json("diff", "--exit-code", status=0)
    stale = fabric.run("apply", "--lab", "--yes", "--plan", plan, *FREE, status=2)
    assert f"{spoiled} changed since the plan was written" in stale.err


def test_stale_plans(fabric: Fabric, spoiled: str, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    fabric.run("diff", "--lab", "-o", plan, *FREE, status=0)
    runs = len(fabric.runs())

    def refused(*words: str) -> str:
        text = fabric.run("apply", "--lab", "--yes", "--plan", plan, *words, status=2).err
        assert "stale" in text
        return text

    fabric.edit("fabric.yaml", "host: 9000", "host: 8000")
    assert "the intent or inventory changed" in refused(*FREE)
    fabric.edit("fabric.yaml", "host: 8000", "host: 9000")
    # What was allowed when it was written is not allowed now: the node would get no lines.
    assert spoiled in refused()
    fabric.somebody(CUMULUS, *TYPED["cumulus"].spoil)
    assert f"{CUMULUS} changed since" in refused(*FREE)
    (tmp_path / "plan.json").write_text('{"version": 1}', encoding="utf-8")
    assert "is not a plan" in fabric.run("apply", "--lab", "--plan", plan, status=2).err
    assert len(fabric.runs()) == runs
    assert fabric.drift(status=1).drifts.keys() == {spoiled, CUMULUS}


def test_staging_leaves_nothing_behind(fabric: Fabric) -> None:
    for name, platform in SWITCHES.items():
        fabric.somebody(name, *TYPED[platform].spoil)
    before = {name: fabric.running(name) for name in SWITCHES}
    shown = fabric.run("diff", "--lab", "--stage", *FREE, status=0).out
    for name in SWITCHES:
        assert f"{name}: the device accepts the change" in shown
    assert "qos trust dscp" in shown and "mtu" in shown
    assert {name: fabric.running(name) for name in SWITCHES} == before
    assert not re.search(r"fabric-\S+ +pending", fabric.somebody(EOS, "show configuration sessions detail"))
    assert "fabric" not in fabric.somebody(SONIC, "ls /run/lock", "sudo config list-checkpoints")
    assert "fabric" not in fabric.somebody(CUMULUS, "ls /tmp")
    with fabric.broken(EOS, "refuse", "qos trust dscp"):
        told = fabric.run("diff", "--lab", "--stage", "--limit", EOS, *FREE, status=0).out
    assert f"{EOS}: stage: % Invalid input" in told
    assert not re.search(r"fabric-\S+ +pending", fabric.somebody(EOS, "show configuration sessions detail"))
    fabric.apply(*FREE, status=0)


def test_a_limit(fabric: Fabric, spoiled: str) -> None:
    fabric.somebody(CUMULUS, *TYPED["cumulus"].spoil)
    sent = len(fabric.lines(CUMULUS))
    found = fabric.apply("--limit", "platform=sonic", *FREE, status=0)
    assert set(found.statuses) == {spoiled}
    assert len(fabric.lines(CUMULUS)) == sent
    assert set(fabric.drift(status=1).drifts) == {CUMULUS}
    assert "selects no node" in fabric.run("drift", "--lab", "--limit", "role=router", status=2).err


@pytest.mark.parametrize("state", ["maintenance", "retired"])
def test_nodes_that_are_out_of_service(fabric: Fabric, spoiled: str, state: str) -> None:
    hosts = (fabric.folder / "hosts.yaml").read_text(encoding="utf-8")
    row = next(line for line in hosts.splitlines() if line.startswith(spoiled))
    fabric.edit("hosts.yaml", row, row.replace("}", f", data: {{state: {state}}}}}"))
    try:
        assert fabric.drift(status=0).data["clean"]
        left = fabric.apply(*FREE, status=0)
        assert left.statuses[spoiled] == "skipped" and state in left.rows[spoiled]["detail"]
        taken = fabric.apply("--include", state, status=0)
        assert taken.statuses[spoiled] in ("applied", "applied-config-only")
    finally:
        fabric.write(hosts=hosts)


def test_drift_ends_with(fabric: Fabric, spoiled: str) -> None:
    assert fabric.run("drift", "--lab", "--limit", "leaf01,leaf02", status=0).out.strip().endswith("clean")
    fabric.run("drift", "--lab", status=1)
    with fabric.broken(EOS, "unreachable"):
        unread = fabric.run("drift", "--lab", "--limit", "leaf01,leaf02", status=1).out
        assert f"{EOS}: not read: " in unread
        fabric.run("drift", "--lab", "--limit", EOS, status=2)


def test_a_no_is_a_no(fabric: Fabric, spoiled: str) -> None:
    """Nobody answers without a terminal, and nothing is changed."""
    runs = len(fabric.runs())
    assert "--yes" in fabric.run("apply", "--lab", *FREE, status=1).err
    fabric.json("apply", "--dry-run", *FREE, status=0)
    fabric.json("apply", "--dry-run", status=1)
    assert len(fabric.runs()) == runs and set(fabric.drift().drifts) == {spoiled}


@pytest.mark.judge("cases")
def test_b91_a_failed_node_has_a_row(fabric: Fabric, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """leaf01 refuses connections at the push step, leaf02 does not."""
    case = yaml.safe_load((shared / "cases" / "B91-failed-host-dropped.yaml").read_text(encoding="utf-8"))
    node = case["expect"]["node"]
    assert node == "leaf01" and case["expect"]["verdict"] == "error"
    for name in ("leaf01", "leaf02"):
        fabric.somebody(name, *TYPED["arista_eos"].spoil)
    begin = pushing.Told.wave

    def refuse_connections(self: pushing.Told, *words: Any) -> None:
        lab.break_(fabric.folder, node, "unreachable")
        begin(self, *words)

    with monkeypatch.context() as patch:
        patch.setattr(pushing.Told, "wave", refuse_connections)
        found = fabric.apply("--limit", "leaf01,leaf02", *FREE)
    lab.mend(fabric.folder, node)
    assert found.status == 1
    assert found.statuses == {"leaf01": "unreachable", "leaf02": "applied"}
    assert "refused" in found.rows[node]["detail"]
    fabric.apply(*FREE, status=0)
