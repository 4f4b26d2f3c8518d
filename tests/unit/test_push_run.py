"""A push on devices in memory: every way a node can end, the journal, stop and hold, recovery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdma_fabric.codec import from_json
from rdma_fabric.plan.changes import Plan, PlanRow
from rdma_fabric.platforms._contract import Disturbs
from rdma_fabric.push.journal import FILE, Play, RunRecord, read
from rdma_fabric.push.reach import Outcome
from rdma_fabric.push.recover import recover_runs
from rdma_fabric.push.rows import GOOD, Row
from rdma_fabric.push.run import Push, RunSettings
from rdma_fabric.push.runs import all_runs, find_run, new_run, open_journal, unfinished
from rdma_fabric.state import UNKNOWN, NodeState, differences
from tests.support.plans import Bench, MemoryReach, bench, mtu, observed

LEAVES = ("leaf01", "leaf02")
GPUS = ("gpu01", "gpu02", "gpu03", "gpu04")
Script = Mapping[tuple[str, str], Outcome | BaseException]


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """All MTUs are too small: the leaves are the first wave, the hosts the second."""
    found = bench(tmp_path / "fabric", monkeypatch)
    for name, state in found.devices.items():
        found.devices[name] = mtu(state, 1500)
    return found


class Told:
    """Progress that is remembered."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def wave(self, number: int, total: int, nodes: tuple[str, ...]) -> None:
        self.said.append(f"wave {number}/{total}: {' '.join(nodes)}")

    def node(self, name: str, step: str, detail: str = "") -> None:
        self.said.append(f"{name} {step}")


class Pushed:
    """One run, its rows and its journal."""

    def __init__(
        self, net: Bench, state: Path, script: Script | None = None, plan: Plan | None = None
    ) -> None:
        self.net = net
        self.state = state
        self.reach = MemoryReach(net, script or {})
        self.told = Told()
        self.plan = net.plan() if plan is None else plan
        self.push = Push(
            self.plan,
            net.targets(),
            net.observe(),
            self.reach,
            open_journal(state, "abc"),
            RunSettings("abc"),
            self.told,
            clock=lambda: "2026-01-01T00:00:00+00:00",
        )

    def rows(self) -> dict[str, Row]:
        found = self.push.execute()
        assert [row.node for row in found] == [row.node for row in self.plan.rows]
        return {row.node: row for row in found}

    @property
    def record(self) -> RunRecord:
        return read(self.state / "runs" / "abc" / FILE)


def _statuses(rows: Mapping[str, Row]) -> str:
    """Statuses of leaf01, leaf02 and the hosts, in short."""
    return " ".join(rows[name].status for name in ("leaf01", "leaf02", "gpu01"))


def test_all_goes_well(net: Bench, tmp_path: Path) -> None:
    run = Pushed(net, tmp_path)
    rows = run.rows()
    assert {row.status for row in rows.values()} == {"applied"}
    assert run.reach.calls == [
        ("commit", LEAVES), ("confirm", LEAVES), ("commit", GPUS), ("confirm", GPUS),
    ]  # fmt: skip
    assert run.told.said[0] == "wave 1/2: leaf01 leaf02"
    assert rows["gpu01"].settings[0] == ("eth0 mtu", "1500", "9000")
    assert rows["gpu01"].wave == 2
    assert run.record.ended
    assert not run.record.unfinished
    assert net.plan().empty


def test_nodes_that_are_not_pushed_have_rows_too(net: Bench, tmp_path: Path) -> None:
    net.devices["gpu04"] = net.targets()["gpu04"].wanted
    fixed = tuple(
        PlanRow(name, status, f"why {name}")  # type: ignore[arg-type]
        for name, status in (("gpu01", "rejected"), ("gpu02", "unreachable"), ("gpu03", "skipped"))
    )
    rows = Pushed(net, tmp_path, plan=net.plan(fixed=fixed)).rows()
    assert {name: row.status for name, row in rows.items()} == {
        "leaf01": "applied",
        "leaf02": "applied",
        "gpu01": "rejected",
        "gpu02": "unreachable",
        "gpu03": "skipped",
        "gpu04": "unchanged",
    }
    assert [rows[name].good for name in GPUS] == [False, False, True, True]


FAIL = "% refused"


@pytest.mark.parametrize(
    ("script", "leaf01", "detail", "after"),
    [
        # Before anything is live: the node is as it was.
        ({"commit": Outcome(False, "timeout", "connect")}, "unreachable", "timeout", 1500),
        ({"commit": Outcome(False, "changed since it was read", "changed")}, "failed", "changed since", 1500),
        ({"commit": Outcome(False, "locked by bob", "lock", clean=True)}, "failed", "locked by bob", 1500),
        ({"commit": Outcome(False, FAIL, "stage", clean=True)}, "failed", FAIL, 1500),
        # Something may be there: undo.
        ({"commit": Outcome(False, FAIL, "lock")}, "rolled-back", f"lock: {FAIL}", 1500),
        ({"commit": Outcome(False, FAIL, "stage")}, "rolled-back", f"stage: {FAIL}", 1500),
        ({"commit": Outcome(False, FAIL, "commit")}, "rolled-back", f"commit: {FAIL}", 1500),
        ({"commit": Outcome(False, "closed", "session")}, "rolled-back", "session: closed", 1500),
        (
            {"commit": Outcome(False, FAIL, "commit"), "undo": Outcome(False, "gone", "undo")},
            "failed",
            f"commit: {FAIL}; the undo failed too: gone",
            1500,
        ),
        # Committed, but the read-back does not show it.
        ({"commit": Outcome(True)}, "rolled-back", "read-back: the node could not be read back", 1500),
        # Proved, then confirm, save or unlock failed.
        ({"confirm": Outcome(False, FAIL, "confirm")}, "failed", f"confirm: {FAIL}", 9214),
        ({"confirm": Outcome(False, FAIL, "confirm", clean=True)}, "rolled-back", f"confirm: {FAIL}", 9214),
        ({"confirm": Outcome(False, FAIL, "save")}, "failed", f"save: {FAIL}", 9214),
    ],
)  # fmt: skip
def test_a_node_that_fails_stops_the_rest(
    script: Mapping[str, Outcome], leaf01: str, detail: str, after: int, net: Bench, tmp_path: Path
) -> None:
    """Its wave is finished, what was proved stays, later waves are not started."""
    run = Pushed(net, tmp_path, {(phase, "leaf01"): one for phase, one in script.items()})
    rows = run.rows()
    assert _statuses(rows) == f"{leaf01} applied skipped"
    assert detail in rows["leaf01"].detail
    assert rows["gpu01"].detail == "not started: wave 1 failed on leaf01"
    assert not rows["gpu01"].good
    ports = net.devices["leaf01"].ports
    assert {port.settings.mtu.ip for port in ports} == {after}
    assert {port.settings.mtu.ip for port in net.devices["leaf02"].ports} == {9214}
    assert ("commit", GPUS) not in run.reach.calls
    assert run.record.ended


def test_a_read_back_that_shows_something_else(net: Bench, tmp_path: Path) -> None:
    wrong = observed(mtu(net.targets()["leaf01"].wanted, 4200, "e2", "e3"))
    run = Pushed(net, tmp_path, {("commit", "leaf01"): Outcome(True, observation=wrong)})
    row = run.rows()["leaf01"]
    assert row.status == "rolled-back"
    assert row.detail == "read-back: e2 mtu: found 4200, wanted 9214; e3 mtu: found 4200, wanted 9214"


def test_an_unknown_read_back_is_no_proof(net: Bench, tmp_path: Path) -> None:
    blind = observed(mtu(net.targets()["leaf01"].wanted, UNKNOWN, "e1"))
    run = Pushed(net, tmp_path, {("commit", "leaf01"): Outcome(True, observation=blind)})
    assert run.rows()["leaf01"].status == "rolled-back"


def test_shades_of_applied(net: Bench, tmp_path: Path) -> None:
    seen = observed(net.targets()["gpu01"].wanted)
    script = {
        ("commit", "gpu01"): Outcome(True, observation=replace(seen, operational=False)),
        ("commit", "gpu02"): Outcome(True, observation=seen, pending_reset=True),
    }
    net.devices["gpu03"] = mtu(net.devices["gpu03"], UNKNOWN, "eth0")
    run = Pushed(net, tmp_path, script)
    rows = run.rows()
    assert [rows[name].status for name in GPUS] == [
        "applied-config-only", "pending-reset", "unknown", "applied",
    ]  # fmt: skip
    assert "could not read ports.eth0.mtu.ip" in rows["gpu03"].detail
    assert [rows[name].good for name in GPUS] == [True, False, False, True]


def test_a_run_of_ansible_is_counted_once(net: Bench, tmp_path: Path) -> None:
    play = Play(2, 1)
    script = {
        ("commit", name): Outcome(True, observation=observed(net.targets()[name].wanted), play=play)
        for name in ("gpu01", "gpu02")
    }
    run = Pushed(net, tmp_path, script)
    assert run.rows()["gpu01"].status == "applied"
    assert run.record.plays == (play,)


def test_a_value_that_waits_for_a_reset_holds_nobody_back(net: Bench, tmp_path: Path) -> None:
    """It is written and shown as pending; the next plan has nothing more to do there."""
    wanted = net.targets()["gpu01"].wanted
    old = replace(observed(mtu(wanted, 1500, "eth0")), stored=wanted, pending=wanted)
    run = Pushed(net, tmp_path, {("commit", "gpu01"): Outcome(True, observation=old)})
    rows = run.rows()
    assert (rows["gpu01"].status, rows["gpu02"].status) == ("pending-reset", "applied")
    assert ("confirm", GPUS) in run.reach.calls

    other = replace(old, pending=mtu(wanted, 4200, "eth0"))
    run = Pushed(net, tmp_path / "other", {("commit", "gpu01"): Outcome(True, observation=other)})
    assert run.rows()["gpu01"].status == "rolled-back"


class TestJournal:
    """Written before it is done."""

    def test_what_is_on_disk_when_the_device_is_touched(self, net: Bench, tmp_path: Path) -> None:
        run = Pushed(net, tmp_path)
        before = dict(net.devices)
        looked: list[str] = []

        def look(phase: str, names: tuple[str, ...]) -> None:
            wanted = {"commit": "committing", "confirm": "confirming"}[phase]
            for name in names:
                node = run.record.nodes[name]
                assert node.phase == wanted
                assert node.open
                assert not differences(from_json(NodeState, node.before), before[name])
                looked.append(name)
            waiting = [one.phase for name, one in run.record.nodes.items() if name not in looked]
            assert set(waiting) <= {"planned"}

        run.reach.before = look
        run.rows()
        assert looked == [*LEAVES, *LEAVES, *GPUS, *GPUS]

    def test_undo_is_announced(self, net: Bench, tmp_path: Path) -> None:
        run = Pushed(net, tmp_path, {("commit", "leaf01"): Outcome(False, FAIL, "commit")})
        phases: dict[str, set[str]] = {}

        def look(phase: str, names: tuple[str, ...]) -> None:
            phases[phase] = {run.record.nodes[name].phase for name in names}

        run.reach.before = look
        run.rows()
        assert phases["undo"] == {"undoing"}

    def test_before_holds_our_settings_only(self, net: Bench, tmp_path: Path) -> None:
        run = Pushed(net, tmp_path)
        run.rows()
        recorded = from_json(NodeState, run.record.nodes["leaf01"].before)
        assert {port.settings.mtu.ip for port in recorded.ports} == {1500}
        assert {port.settings.marking for port in recorded.ports} == {recorded.ports[0].settings.marking}

    @pytest.mark.parametrize("phase", ["commit", "confirm"])
    @pytest.mark.parametrize("death", [KeyboardInterrupt(), RuntimeError("bug")])
    def test_a_run_that_dies_can_be_recovered(
        self, phase: str, death: BaseException, net: Bench, tmp_path: Path
    ) -> None:
        run = Pushed(net, tmp_path, {(phase, "gpu02"): death})
        with pytest.raises(type(death)):
            run.rows()
        (record,) = unfinished(tmp_path)
        assert {name for name, node in record.nodes.items() if node.open} == set(GPUS)
        assert {record.nodes[name].status for name in LEAVES} == {"applied"}
        reach = MemoryReach(net, saved=run.reach.saved)
        assert recover_runs((record,), net.resolved, reach, tmp_path, "new") == ()
        assert reach.calls == [("recover", GPUS)]
        (record,) = all_runs(tmp_path)
        assert record.recovered_by == "new"
        assert not [name for name, node in record.nodes.items() if node.open]
        assert not unfinished(tmp_path)

    def test_what_cannot_be_recovered_is_tried_again(self, net: Bench, tmp_path: Path) -> None:
        run = Pushed(net, tmp_path, {("commit", "gpu02"): KeyboardInterrupt()})
        with pytest.raises(KeyboardInterrupt):
            run.rows()
        reach = MemoryReach(net, {("recover", "gpu03"): Outcome(False, "timeout", "connect")})
        (trouble,) = recover_runs(unfinished(tmp_path), net.resolved, reach, tmp_path, "new")
        assert trouble == "gpu03: run abc could not be recovered there: timeout"
        (record,) = unfinished(tmp_path)
        assert [name for name, node in record.nodes.items() if node.open] == ["gpu03"]
        again = MemoryReach(net)
        assert recover_runs((record,), net.resolved, again, tmp_path, "newer") == ()
        assert again.calls == [("recover", ("gpu03",))]
        assert not unfinished(tmp_path)

    def test_a_node_that_left_the_inventory(self, net: Bench, tmp_path: Path) -> None:
        run = Pushed(net, tmp_path, {("commit", "gpu02"): KeyboardInterrupt()})
        with pytest.raises(KeyboardInterrupt):
            run.rows()
        plans = {name: plan for name, plan in net.resolved.plans.items() if name != "gpu04"}
        smaller = replace(net.resolved, plans=plans)
        (trouble,) = recover_runs(unfinished(tmp_path), smaller, MemoryReach(net), tmp_path, "new")
        assert trouble == "gpu04: run abc left it open, and it is not in the inventory any more"

    def test_what_a_run_left_behind_is_open(self, net: Bench, tmp_path: Path) -> None:
        script = {
            ("commit", "leaf01"): Outcome(False, FAIL, "commit"),
            ("undo", "leaf01"): Outcome(False, "gone", "undo"),
        }
        Pushed(net, tmp_path, script).rows()
        (record,) = unfinished(tmp_path)
        assert record.ended
        assert [name for name, node in record.nodes.items() if node.open] == ["leaf01"]


class TestRuns:
    """The runs of a folder."""

    def test_names_are_new_and_short(self, tmp_path: Path) -> None:
        names = {new_run(tmp_path) for _ in range(50)}
        assert len(names) == 50
        assert all(len(name) == 6 and name.isalnum() and name.islower() for name in names)

    def test_the_newest_that_wrote(self, net: Bench, tmp_path: Path) -> None:
        assert find_run(tmp_path, "") is None
        for number, (name, writes) in enumerate((("aaa", True), ("bbb", True), ("ccc", False))):
            journal = open_journal(tmp_path, name)
            events: list[dict[str, Any]] = [{"event": "start", "run": name, "at": f"2026-01-0{number + 1}"}]
            node = {"event": "node", "node": "gpu01", "phase": "done"}
            journal.append([*events, node | ({"before": {}} if writes else {})])
            journal.close()
        (tmp_path / "runs" / "notes.txt").write_text("not a run", encoding="utf-8")
        (tmp_path / "runs" / "ddd").mkdir()
        found = find_run(tmp_path, "")
        assert found is not None
        assert found.run == "bbb"
        assert [one.run for one in all_runs(tmp_path)] == ["aaa", "bbb", "ccc"]
        assert find_run(tmp_path, "zzz") is None


OUTCOMES = st.sampled_from(
    [
        None,
        Outcome(False, "t", "connect"),
        Outcome(False, "t", "changed"),
        Outcome(False, "t", "lock", clean=True),
        Outcome(False, "t", "stage"),
        Outcome(False, "t", "commit"),
        Outcome(False, "t", "session"),
        Outcome(True),
    ]
)
LATER = st.sampled_from([None, Outcome(False, "t", "confirm"), Outcome(False, "t", "save")])
UNDONE = st.sampled_from([None, Outcome(False, "t", "undo")])


@settings(
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_whatever_happens_every_row_tells_the_truth(
    data: st.DataObject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = bench(tmp_path / "fabric", monkeypatch)
    for name, state in net.devices.items():
        net.devices[name] = mtu(state, 1500)
    script = {}
    for name in (*LEAVES, *GPUS):
        for phase, choices in (("commit", OUTCOMES), ("confirm", LATER), ("undo", UNDONE)):
            told = data.draw(choices, f"{phase} {name}")
            if told is not None:
                script[phase, name] = told
    folder = tmp_path / new_run(tmp_path / "none")
    run = Pushed(net, folder, script, net.plan(allow=Disturbs.REBOOT))
    rows = run.rows()
    assert set(rows) == set(net.inventory.nodes)
    for name, row in rows.items():
        is_there = not differences(net.targets()[name].wanted, net.devices[name])
        if row.status in GOOD:
            assert is_there
        if row.status in ("rolled-back", "unreachable", "skipped"):
            assert not is_there
        assert run.record.nodes[name].status == row.status
    assert {name for name, node in run.record.nodes.items() if node.left} == {
        name
        for name, row in rows.items()
        if row.status == "failed" and ("undo failed" in row.detail or row.detail.startswith("confirm"))
    }
