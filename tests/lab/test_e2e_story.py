"""The story of `make demo` on the example fabric, told by the commands' JSON."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.push.files import FilePusher
from tests.support.fabrics import DEMO, Fabric, lab_up

pytestmark = [pytest.mark.lab, pytest.mark.judge("linux-sandbox")]

HOSTS = {f"gpu0{number}" for number in range(1, 9)}
SWITCHES = {"spine01", "spine02", "leaf01", "leaf02", "leaf03", "leaf04"}
DRAINED = ("--assume-drained", "gpu05")
GOOD = {"applied", "applied-config-only"}
FOREIGN = (
    'nv set interface swp1 description "rack 7"',
    "nv set acl GUESTS type ipv4",
    "nv set acl GUESTS rule 10 match ip source-ip 198.51.100.0/24",
    "nv set acl GUESTS rule 10 action deny",
    "nv config apply -y",
)
DRIFTS = {
    "gpu05": [("running", "eth0", "PFC priorities", "4", "3")],
    "leaf03": [("running", "swp1", "mtu", "1500", "9216")],
}


@pytest.fixture(scope="module")
def ansible() -> Iterator[list[set[str]]]:
    """The hosts of every Ansible run so far."""
    runs: list[set[str]] = []
    push = FilePusher.push

    def counted(self: FilePusher, jobs: Any, *words: Any, **more: Any) -> Any:
        runs.append(set(jobs))
        return push(self, jobs, *words, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FilePusher, "push", counted)
        yield runs


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory, ansible: list[set[str]]) -> Iterator[Fabric]:
    """The demo at the intent and in service, after `apply` twice."""
    folder = tmp_path_factory.mktemp("story") / "demo"
    shutil.copytree(DEMO, folder)
    git(folder, "init", "-q")
    commit(folder, "planned")
    found = Fabric(folder)
    with lab_up(found, needs=sorted(HOSTS)):
        first = found.apply(status=0)
        assert set(first.statuses) == HOSTS | SWITCHES and set(first.statuses.values()) <= GOOD
        assert ansible == [HOSTS]
        waves = {name: row["wave"] for name, row in first.rows.items()}
        assert waves["spine01"] < waves["leaf01"] < waves["gpu01"]
        sent = {name: len(found.lines(name)) for name in SWITCHES}
        second = found.apply(status=0)
        assert second.statuses == dict.fromkeys(HOSTS | SWITCHES, "unchanged")
        assert len(ansible) == 1 and len(found.runs()) == 1
        for name, count in sent.items():
            asked = [line for line in found.lines(name)[count:] if line.strip()]
            assert asked and not any(word in line for line in asked for word in CHANGING)
        found.edit("defaults.yaml", "planned", "active")
        commit(folder, "active")
        yield found


CHANGING = (
    "configure",
    "nv set",
    "nv config apply",
    "nv config attach",
    "apply-patch",
    "config load",
    "save",
)


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def commit(folder: Path, subject: str) -> None:
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", subject)


def test_somebody_changes_two_nodes(fabric: Fabric, ansible: list[set[str]]) -> None:
    fabric.somebody("leaf03", *FOREIGN)
    running = {name: fabric.running(name) for name in SWITCHES}
    fabric.somebody("leaf03", "nv set interface swp1 link mtu 1500", "nv config apply -y")
    fabric.somebody("gpu05", "mlnx_qos -i eth0 --pfc 0,0,0,0,1,0,0,0")

    live = fabric.json("check", "--live", status=1).data
    assert live["rejected"] == ["gpu05", "leaf03"]
    assert not set(live["affected"]) & set(live["rejected"])
    named = {
        place["node"]
        for one in live["findings"]
        if one["severity"] == "error"
        for place in one["places"]
        if place.get("node")
    }
    assert named == {"gpu05", "leaf03"}

    drift = fabric.drift(status=1)
    assert drift.drifts == DRIFTS and len(drift.data["nodes"]) == 14

    before = len(ansible)
    refused = fabric.apply(status=1)
    assert {name for name, status in refused.statuses.items() if status == "rejected"} == set(DRIFTS)
    assert "port-bounce" in refused.rows["gpu05"]["detail"]
    assert "--assume-drained" in refused.rows["gpu05"]["detail"]
    assert len(ansible) == before and fabric.drift().drifts == DRIFTS

    repaired = fabric.apply(*DRAINED, status=0)
    changed = {name for name, status in repaired.statuses.items() if status != "unchanged"}
    assert changed == set(DRIFTS)
    assert ansible[before:] == [{"gpu05"}]
    for name in SWITCHES - {"leaf03"}:
        assert fabric.running(name) == running[name]
    lines = [line.strip() for line in fabric.running("leaf03").splitlines()]
    assert "GUESTS:" in lines and "description: rack 7" in lines
    # The MTU was the default before; the repair says it.
    told = Counter(lines) - Counter(line.strip() for line in running["leaf03"].splitlines())
    assert set(told) <= {"link:", "mtu: 9216"}

    undone = fabric.rollback(repaired.data["run"], *DRAINED, status=0)
    assert set(undone.statuses) == set(DRIFTS)
    assert fabric.drift(status=1).drifts == DRIFTS
    fabric.apply(*DRAINED, status=0)
    assert fabric.drift(status=0).drifts == {}
    kinds = [(run["kind"], run["undoes"]) for run in fabric.runs()]
    assert kinds[-2:] == [("rollback", repaired.data["run"]), ("apply", "")]


def test_a_pull_request_asks_no_device(fabric: Fabric) -> None:
    sent = {name: len(fabric.lines(name)) for name in HOSTS | SWITCHES}
    fabric.edit("fabric.yaml", "priority: 3, dscp: [26]", "priority: 4, dscp: [24]")
    try:
        found = fabric.run("diff", "--base", "HEAD", "--format", "json", status=0).data
    finally:
        fabric.edit("fabric.yaml", "priority: 4, dscp: [24]", "priority: 3, dscp: [26]")
    groups = [set(one["nodes"]) for one in found["groups"]]
    assert set().union(*groups) == HOSTS | SWITCHES and sum(map(len, groups)) == 14
    assert HOSTS in groups and {"leaf02", "leaf04"} in groups
    for one in found["groups"]:
        titles = {setting["setting"] for setting in one["settings"]}
        assert one["lines"] and {"DSCP map", "PFC priorities"} <= titles
    assert {name: len(fabric.lines(name)) for name in HOSTS | SWITCHES} == sent
    same = fabric.run("diff", "--base", "HEAD", "--format", "json", "--exit-code", status=0).data
    assert same["groups"] == []
