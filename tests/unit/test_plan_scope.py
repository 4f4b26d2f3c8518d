"""Which nodes a plan is about, what was applied before, and what the intent dropped since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rdma_fabric.checker import Judged, Report, build, check
from rdma_fabric.cli.common import load
from rdma_fabric.plan.applied import inputs_digest, left, read_applied, tidy, write_applied
from rdma_fabric.plan.scope import make_scope
from rdma_fabric.state import UNMANAGED, Amount, Ecn, NodeState
from tests.support.desk import Desk, desk
from tests.support.inputs import GROUPS, HOSTS, INTENT, fabric
from tests.support.plans import mtu

ECN = Ecn(Amount(1000), Amount(2000))


@pytest.fixture
def fab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    hosts = HOSTS + "".join(
        f"{name}: {{groups: [leaf], data: {{state: {state}}}}}\n"
        for name, state in (("old", "retired"), ("fix", "maintenance"))
    )
    return desk(tmp_path / "fabric", monkeypatch, capsys, hosts=hosts)


def _judged(fab: Desk) -> tuple[Judged, Report]:
    judged = build(load(fab.folder))
    return judged, check(judged)


class TestScope:
    """Targets, and rows that are decided before anything is read."""

    def test_states(self, fab: Desk) -> None:
        judged, report = _judged(fab)
        scope = make_scope(judged, report, judged.views)
        assert set(scope.names) == {"leaf01", "leaf02", "gpu01", "gpu02", "gpu03", "gpu04"}
        assert {(row.node, row.status, row.reason) for row in scope.fixed} == {
            ("old", "skipped", "is in state retired; --include retired takes it along"),
            ("fix", "skipped", "is in state maintenance; --include maintenance takes it along"),
        }
        assert "fix" in make_scope(judged, report, judged.views, include=("maintenance",)).names

    def test_rejected_nodes_say_why(self, fab: Desk) -> None:
        judged, report = _judged(fab)
        scope = make_scope(judged, replace(report, rejected=("gpu01",)), judged.views)
        (row,) = [row for row in scope.fixed if row.status == "rejected"]
        assert (row.node, row.reason) == ("gpu01", "the intent has errors")

    def test_equal_nodes_share_a_target_until_their_past_differs(self, fab: Desk) -> None:
        judged, report = _judged(fab)
        targets = make_scope(judged, report, judged.views).targets
        assert targets["gpu01"] is targets["gpu02"]
        past = {"gpu01": judged.views["gpu01"].wanted}
        targets = make_scope(judged, report, judged.views, applied=past).targets
        assert targets["gpu01"].wanted is targets["gpu02"].wanted
        shorter = mtu(judged.views["gpu01"].wanted, 1500)
        intent = (fab.folder / "fabric.yaml").read_text(encoding="utf-8").replace(", host: 9000", "")
        (fab.folder / "fabric.yaml").write_text(intent, encoding="utf-8")
        judged, report = _judged(fab)
        scope = make_scope(judged, report, judged.views, applied={"gpu01": shorter, "gpu02": shorter})
        told = [(one.node, one.setting, one.value) for one in scope.left]
        assert told == [(f"gpu0{n}", f"eth{p} mtu", "1500") for n in (1, 2) for p in (0, 1, 2)]

    def test_what_the_plan_takes_away_is_not_said_to_stay(self, fab: Desk) -> None:
        judged, report = _judged(fab)
        past = {"leaf01": _marked(judged.views["leaf01"].wanted, 4, ECN)}
        scope = make_scope(judged, report, judged.views, applied=past)
        assert {port.settings.qos.classes[4].ecn for port in scope.targets["leaf01"].wanted.ports} == {None}
        assert scope.left == ()


def _marked(state: NodeState, priority: int, ecn: object) -> NodeState:
    ports = []
    for port in state.ports:
        qos = port.settings.qos
        classes = tuple(
            replace(one, ecn=ecn) if index == priority else one  # type: ignore[arg-type]
            for index, one in enumerate(qos.classes)
        )
        ports.append(replace(port, settings=replace(port.settings, qos=replace(qos, classes=classes))))
    return replace(state, ports=tuple(ports))


class TestApplied:
    """The last-applied record of a node."""

    def test_it_comes_back(self, tmp_path: Path) -> None:
        state = fabric(tmp_path).plans["leaf01"].state
        folder = tmp_path / "lab" / "applied"
        write_applied(folder, "abc", {"leaf01": state, "gpu01": NodeState()})
        assert read_applied(folder, ["leaf01", "gpu01", "none"]) == {"leaf01": state, "gpu01": NodeState()}
        assert [path.suffix for path in folder.iterdir()] == [".json", ".json"]

    def test_equal_records_are_one_object(self, tmp_path: Path) -> None:
        state = fabric(tmp_path).plans["gpu01"].state
        write_applied(tmp_path, "abc", {"gpu01": state, "gpu02": state, "gpu03": NodeState()})
        found = read_applied(tmp_path, ["gpu01", "gpu02", "gpu03"])
        assert found["gpu01"] is found["gpu02"]
        assert found["gpu03"] == NodeState()

    @pytest.mark.parametrize(
        "text", ["", "{}", "[]", '{"state": 5}', '{"state": {"ports": [{}]}}', "[" * 9999]
    )
    def test_a_broken_record_is_no_record(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "gpu01.json").write_text(text, encoding="utf-8")
        assert read_applied(tmp_path, ["gpu01"]) == {}

    def test_marking_of_a_priority_that_lost_its_class_goes(self, tmp_path: Path) -> None:
        before = _marked(fabric(tmp_path).plans["leaf01"].state, 4, ECN)
        wanted = fabric(tmp_path, INTENT).plans["leaf01"].state
        assert tidy(wanted, None) is wanted
        assert tidy(wanted, wanted) is wanted
        tidied = tidy(wanted, before)
        assert {port.settings.qos.classes[4].ecn for port in tidied.ports} == {None}
        assert {port.settings.qos.classes[5].ecn for port in tidied.ports} == {UNMANAGED}

    def test_what_the_intent_dropped_is_named(self, tmp_path: Path) -> None:
        plan = fabric(tmp_path).plans["gpu01"]
        assert left("gpu01", plan.state, plan.state) == ()
        assert left("gpu01", plan.state, None) == ()
        dropped = left("gpu01", mtu(plan.state, UNMANAGED, "eth0"), plan.state)
        assert [(one.node, one.setting, one.value) for one in dropped] == [("gpu01", "eth0 mtu", "9000")]
        assert left("gpu01", mtu(plan.state, 4200), plan.state) == ()


def test_every_input_file_counts_in_the_digest(tmp_path: Path) -> None:
    fabric(tmp_path, groups=GROUPS)
    first = inputs_digest(tmp_path)
    assert inputs_digest(tmp_path) == first
    assert inputs_digest(tmp_path, ["mtu.host=1"]) != first
    seen = {first}
    for name in ("fabric.yaml", "hosts.yaml", "groups.yaml", "defaults.yaml", "cables.csv"):
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write("# more\n")
        seen.add(inputs_digest(tmp_path))
    assert len(seen) == 6
