"""observe, diff, apply, drift, rollback and runs: exit codes and words, on devices in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rdma_fabric.push.locks import local_lock
from rdma_fabric.push.reach import Outcome
from rdma_fabric.state import UNKNOWN
from tests.support.desk import Desk, desk
from tests.support.inputs import GROUPS, HOSTS
from tests.support.plans import mtu, pfc


@pytest.fixture
def fab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return desk(tmp_path / "fabric", monkeypatch, capsys)


@pytest.fixture
def small(fab: Desk) -> Desk:
    """All MTUs are too small."""
    for name, state in fab.bench.devices.items():
        fab.bench.devices[name] = mtu(state, 1500)
    return fab


def _mtus(fab: Desk) -> set[object]:
    return {port.settings.mtu.ip for state in fab.bench.devices.values() for port in state.ports}


class TestApply:
    """0 all at the intent, 1 not every node, 2 could not start, 130 Ctrl-C."""

    def test_all_there(self, fab: Desk) -> None:
        ran = fab.run("apply")
        assert ran.code == 0
        assert "6 nodes: 6 unchanged" in ran.out
        assert not fab.reaches

    def test_pushes_and_proves(self, small: Desk) -> None:
        ran = small.run("apply", "--yes")
        assert ran.code == 0
        assert _mtus(small) == {9000, 9214}
        assert "wave 1: leaf[01-02]\nwave 2: gpu[01-04]" in ran.out
        assert "applied: leaf[01-02],gpu[01-04]" in ran.out or "applied: gpu[01-04],leaf[01-02]" in ran.out
        assert "wave 1 of 2: leaf[01-02]" in ran.err
        assert "`fabric rollback" in ran.err
        assert small.run("apply", "--yes").code == 0

    def test_json(self, small: Desk) -> None:
        data = json.loads(small.run("apply", "--yes", "--format", "json", "-q").out)
        assert data["version"] == 1
        assert {row["status"] for row in data["rows"]} == {"applied"}
        assert data["rows"][0]["settings"][0] == {"setting": "eth0 mtu", "found": "1500", "wanted": "9000"}

    def test_dry_run_changes_nothing(self, small: Desk) -> None:
        ran = small.run("apply", "--dry-run")
        assert (ran.code, _mtus(small)) == (0, {1500})
        assert "6 nodes: 6 to change" in ran.out
        data = json.loads(small.run("apply", "--dry-run", "--format", "json").out)
        assert {node["status"] for node in data["nodes"]} == {"change"}
        assert data["waves"] == [["leaf01", "leaf02"], ["gpu01", "gpu02", "gpu03", "gpu04"]]
        small.bench.devices["gpu01"] = pfc(small.bench.devices["gpu01"], [])
        assert small.run("apply", "--dry-run").code == 1

    def test_nobody_says_yes(self, small: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
        ran = small.run("apply")
        assert (ran.code, _mtus(small)) == (1, {1500})
        assert "no terminal to ask on; --yes says yes" in ran.err

    @pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("no\n", 1), ("", 1)])
    def test_the_answer(self, answer: str, code: int, small: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        monkeypatch.setattr("sys.stdin.readline", lambda: answer, raising=False)
        ran = small.run("apply")
        assert ran.code == code
        assert "push 2 waves? [y/N]" in ran.err

    def test_a_node_fails(self, small: Desk) -> None:
        small.script = {("commit", "leaf01"): Outcome(False, "% Invalid input", "commit")}
        ran = small.run("apply", "--yes")
        assert ran.code == 1
        assert "rolled-back: leaf01: commit: % Invalid input" in ran.out
        assert "skipped: gpu[01-04]: not started: wave 1 failed on leaf01" in ran.out

    def test_a_node_is_not_reached(self, small: Desk) -> None:
        small.lost = {"gpu02"}
        ran = small.run("apply", "--yes")
        assert ran.code == 1
        assert "unreachable: gpu02: timeout: no answer in 10s" in ran.out

    def test_what_disturbs_is_refused(self, fab: Desk) -> None:
        fab.bench.devices["gpu01"] = pfc(fab.bench.devices["gpu01"], [])
        ran = fab.run("apply", "--yes")
        assert ran.code == 1
        assert "rejected: gpu01: a change of PFC" in ran.out
        assert fab.run("apply", "--yes", "--assume-drained", "gpu01").code == 0

    def test_limit(self, small: Desk) -> None:
        assert small.run("apply", "--yes", "--limit", "gpu01").code == 0
        assert _mtus(small) == {1500, 9000}
        assert small.run("apply", "--yes", "--limit", "gpu09").code == 2
        ran = small.run("apply", "--yes", "--assume-drained", "gpu09")
        assert ran.code == 2
        assert "--assume-drained gpu09" in ran.err

    def test_nodes_in_maintenance_are_left_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        hosts = HOSTS.replace(
            "gpu[01-04]: {groups: [gpu]}", "gpu[01-04]: {groups: [gpu], data: {state: maintenance}}"
        )
        fab = desk(tmp_path, monkeypatch, capsys, hosts=hosts, groups=GROUPS)
        fab.bench.devices["gpu01"] = mtu(fab.bench.devices["gpu01"], 1500)
        ran = fab.run("apply", "--yes")
        assert ran.code == 0
        assert "skipped: gpu[01-04]: is in state maintenance; --include maintenance" in ran.out
        assert fab.run("apply", "--yes", "--include", "maintenance").code == 0
        assert 1500 not in _mtus(fab)

    def test_bad_input_starts_nothing(self, small: Desk) -> None:
        small.edit("9000", "90000")
        assert small.run("apply", "--yes").code == 2

    def test_one_run_at_a_time(self, small: Desk) -> None:
        small.run("apply", "--dry-run")
        with local_lock(small.folder / ".fabric", "other"):
            ran = small.run("apply", "--yes")
        assert ran.code == 2
        assert "run other" in ran.err

    def test_ctrl_c_then_the_next_apply_recovers(self, small: Desk) -> None:
        small.script = {("commit", "gpu02"): KeyboardInterrupt()}
        assert small.run("apply", "--yes").code == 130
        ran = small.run("runs")
        assert "died; the next apply or rollback recovers it" in ran.out
        small.script = {}
        ran = small.run("apply", "--yes")
        assert ran.code == 0
        assert "died; dropping what it left on its nodes" in ran.err
        assert ("recover", ("gpu01", "gpu02", "gpu03", "gpu04")) in [
            call for reach in small.reaches for call in reach.calls
        ]
        assert "recovered by run" in small.run("runs").out

    def test_another_intent_does_not_resume(self, small: Desk) -> None:
        small.script = {("commit", "gpu02"): KeyboardInterrupt()}
        small.run("apply", "--yes")
        small.script = {}
        small.edit("9000", "8000")
        ran = small.run("apply", "--yes")
        assert ran.code == 2
        assert "applied another intent than this one; `fabric rollback" in ran.err

    def test_a_saved_plan(self, small: Desk, tmp_path: Path) -> None:
        path = str(tmp_path / "plan.json")
        assert small.run("diff", "-o", path, "-q").code == 0
        assert small.run("apply", "--yes", "--plan", path).code == 0
        assert _mtus(small) == {9000, 9214}
        ran = small.run("apply", "--yes", "--plan", path)
        assert ran.code == 2
        assert "gpu01 changed since the plan was written" in ran.err
        assert "the plan is stale and was not carried out" in ran.err
        Path(path).write_text("{", encoding="utf-8")
        assert small.run("apply", "--yes", "--plan", path).code == 2
        assert small.run("apply", "--yes", "--plan", str(tmp_path / "none")).code == 2


class TestRollback:
    """Own settings back to what the journal recorded."""

    def test_back_and_forth(self, small: Desk) -> None:
        small.run("apply", "--yes")
        ran = small.run("rollback", "--yes")
        assert ran.code == 0
        assert _mtus(small) == {1500}
        assert "wave 1: gpu[01-04]\nwave 2: leaf[01-02]" in ran.out
        runs = json.loads(small.run("runs", "--format", "json").out)["runs"]
        assert [one["kind"] for one in runs] == ["apply", "rollback"]
        assert runs[1]["undoes"] == runs[0]["run"]
        assert small.run("rollback", runs[0]["run"], "--yes").code == 0
        assert _mtus(small) == {1500}

    def test_only_what_was_ours_goes_back(self, small: Desk) -> None:
        small.run("apply", "--yes")
        foreign = small.bench.devices["gpu01"]
        small.bench.devices["gpu01"] = pfc(foreign, [3, 5])
        ran = small.run("rollback", "--yes", "--limit", "gpu01", "--allow", "port-bounce")
        assert ran.code == 0
        assert {port.settings.mtu.ip for port in small.bench.devices["gpu01"].ports} == {1500}
        assert _mtus(small) == {1500, 9000, 9214}

    def test_what_was_unknown_before_stays(self, fab: Desk) -> None:
        fab.bench.devices["gpu01"] = mtu(mtu(fab.bench.devices["gpu01"], 1500), UNKNOWN, "eth0")
        assert fab.run("apply", "--yes").code == 1
        fab.bench.devices["gpu01"] = mtu(fab.bench.devices["gpu01"], 9000, "eth0")
        assert fab.run("rollback", "--yes").code == 0
        mtus = [port.settings.mtu.ip for port in fab.bench.devices["gpu01"].ports]
        assert mtus == [9000, 1500, 1500]

    def test_what_cannot_be_rolled_back(self, small: Desk) -> None:
        assert small.run("rollback", "--yes").code == 2
        assert "no run wrote here" in small.run("rollback", "--yes").err
        small.run("apply", "--yes")
        assert small.run("rollback", "zzz").code == 2
        ran = small.run("rollback", "--yes", "--lab")
        assert ran.code == 2
        assert "was not on the lab: give the same --lab" in ran.err
        ran = small.run("rollback", "--dry-run")
        assert (ran.code, _mtus(small)) == (0, {9000, 9214})

    def test_a_run_that_died_is_recovered_and_undone(self, small: Desk) -> None:
        small.script = {("confirm", "gpu02"): KeyboardInterrupt()}
        assert small.run("apply", "--yes").code == 130
        small.script = {}
        assert small.run("rollback", "--yes").code == 0
        assert _mtus(small) == {1500}

    def test_nothing_of_the_scope(self, small: Desk) -> None:
        small.run("apply", "--yes", "--limit", "gpu01")
        ran = small.run("rollback", "--yes", "--limit", "gpu02", "--format", "json")
        assert ran.code == 0
        assert json.loads(ran.out)["rows"] == []


class TestDrift:
    """0 clean, 1 drift or a node unreadable, 2 nothing readable."""

    def test_clean(self, fab: Desk) -> None:
        ran = fab.run("drift")
        assert (ran.code, ran.out) == (0, "6 nodes: clean\n")
        assert json.loads(fab.run("drift", "--format", "json").out)["clean"] is True

    def test_drift(self, fab: Desk) -> None:
        fab.bench.devices["gpu01"] = mtu(fab.bench.devices["gpu01"], 1500, "eth1")
        ran = fab.run("drift")
        assert ran.code == 1
        assert "gpu01 eth1 mtu: found 1500, wanted 9000\n6 nodes: 1 drifted\n" in ran.out
        data = json.loads(fab.run("drift", "--format", "json").out)
        (node,) = [one for one in data["nodes"] if one["drift"]]
        assert (data["clean"], node["node"], node["drift"][0]["key"]) == (False, "gpu01", "mtu.ip")
        assert fab.run("drift", "--limit", "gpu02").code == 0

    def test_unreadable(self, fab: Desk) -> None:
        fab.lost = {"gpu01"}
        ran = fab.run("drift")
        assert ran.code == 1
        assert "gpu01: not read: timeout: no answer in 10s" in ran.out
        fab.lost = set(fab.bench.devices)
        assert fab.run("drift").code == 2

    def test_unknown_is_not_clean(self, fab: Desk) -> None:
        fab.bench.devices["gpu01"] = mtu(fab.bench.devices["gpu01"], UNKNOWN, "eth0")
        ran = fab.run("drift")
        assert ran.code == 1
        assert "gpu01: could not read eth0 mtu" in ran.out


class TestObserve:
    """0 all read, 1 some not, 2 none."""

    def test_file(self, fab: Desk, tmp_path: Path) -> None:
        path = tmp_path / "seen.json"
        assert fab.run("observe", "-o", str(path)).code == 0
        assert len(json.loads(path.read_text(encoding="utf-8"))["nodes"]) == 6
        assert fab.run("check", "--observed", str(path), "--format", "json").code in (0, 1)

    def test_some_and_none(self, fab: Desk, tmp_path: Path) -> None:
        fab.lost = {"gpu01"}
        ran = fab.run("observe", "-o", "-")
        assert ran.code == 1
        assert len(json.loads(ran.out)["nodes"]) == 5
        assert "gpu01: timeout: no answer in 10s\n5 of 6 nodes read\n" in ran.err
        fab.lost = set(fab.bench.devices)
        assert fab.run("observe", "-o", str(tmp_path / "x.json")).code == 2
        assert not (tmp_path / "x.json").exists()
        fab.lost = set()
        assert fab.run("observe", "-o", str(tmp_path / "no" / "x.json")).code == 2


class TestDiff:
    """What apply would do; 0 unless asked."""

    def test_devices(self, small: Desk) -> None:
        ran = small.run("diff")
        assert (ran.code, _mtus(small)) == (0, {1500})
        assert "gpu[01-04]" in ran.out
        assert "eth[0-2] mtu: 1500 -> 9000" in ran.out
        assert small.run("diff", "--exit-code").code == 1
        assert json.loads(small.run("diff", "--format", "json").out)["version"] == 1
        small.run("apply", "--yes")
        assert small.run("diff", "--exit-code").code == 0

    def test_what_if(self, fab: Desk) -> None:
        ran = fab.run("diff", "--set", "mtu.host=4200", "--limit", "gpu01")
        assert "eth[0-2] mtu: 9000 -> 4200" in ran.out
        assert "1 node: 1 to change" in ran.out

    def test_quiet_and_plain(self, small: Desk) -> None:
        ran = small.run("diff", "-q")
        assert ran.err == ""
        assert "\x1b" not in small.run("diff", "--no-color").out


class TestLeft:
    """What the intent dropped is told, not touched."""

    def test_told(self, fab: Desk) -> None:
        assert fab.run("apply", "--yes").code == 0
        fab.bench.devices["gpu01"] = mtu(fab.bench.devices["gpu01"], 1500)
        fab.run("apply", "--yes")
        fab.edit("mtu: {switch: 9214, host: 9000}", "mtu: {switch: 9214}")
        ran = fab.run("drift")
        assert ran.code == 0
        assert "gpu01 eth0 mtu: was 9000, is not in the intent any more and stays as it is" in ran.err


class TestRuns:
    """What happened."""

    def test_lists(self, small: Desk) -> None:
        ran = small.run("runs")
        assert (ran.code, ran.out) == (0, "no runs yet\n")
        assert not (small.folder / ".fabric").exists()
        small.run("apply", "--yes")
        ran = small.run("runs")
        assert ran.out.endswith("apply: 6 applied\n")
        name = ran.out.split()[0]
        told = small.run("runs", name, "-v").out
        assert "  gpu01: applied (wave 2)\n    eth0 mtu: 1500 -> 9000\n" in told
        assert small.run("runs", "zzz").code == 2
        assert small.plain("runs", "-C", str(small.folder / "none")).code == 2
