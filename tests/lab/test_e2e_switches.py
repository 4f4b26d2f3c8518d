"""Pushes to switches of every platform on the lab: faults in every phase, foreign lines, locks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric import platforms
from rdma_fabric.lab import fabric as lab
from rdma_fabric.push import nodes
from tests.support.fabrics import MODELS, Fabric, lab_up, make, wait_for
from tests.support.switches import TYPED

pytestmark = pytest.mark.lab

GOOD = ("applied", "applied-config-only")


def pair(platform: str) -> tuple[str, str]:
    """The two switches of a platform in the fabric of this module."""
    return f"{platform}1", f"{platform}2"


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    switches = {name: platform for platform in TYPED for name in pair(platform)}
    made = make(tmp_path_factory.mktemp("switches"), switches, state="active")
    with lab_up(made):
        for platform, typed in TYPED.items():
            for name in pair(platform):
                made.somebody(name, *typed.foreign)
                if typed.unsaved:
                    made.somebody(name, *typed.unsaved)
        found = made.apply("--allow", "port-bounce", status=0)
        assert set(found.statuses) == set(switches)
        assert set(found.statuses.values()) <= set(GOOD)
        yield made


@pytest.fixture(params=sorted(TYPED))
def platform(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def spoiled(fabric: Fabric, platform: str) -> Iterator[tuple[str, str]]:
    """Both switches of a platform with one setting changed by somebody; healthy and clean afterwards."""
    names = pair(platform)
    for name in names:
        fabric.somebody(name, *TYPED[platform].spoil)
    yield names
    for name in names:
        lab.mend(fabric.folder, name)
    if fabric.drift(*limit(names)).drifts:
        fabric.apply(*push(names))
        clean(fabric, names)


def limit(names: tuple[str, ...]) -> tuple[str, str]:
    return "--limit", ",".join(names)


def push(names: tuple[str, ...]) -> tuple[str, ...]:
    """These nodes, whatever it disturbs."""
    return (*limit(names), "--allow", "port-bounce")


def clean(fabric: Fabric, names: tuple[str, ...]) -> None:
    """At the intent in all layers, foreign lines there, and no candidate, checkpoint, timer or lock left."""
    assert fabric.drift(*limit(names), status=0).drifts == {}
    for name in names:
        nothing_left(fabric, name)


def nothing_left(fabric: Fabric, name: str) -> None:
    platform = name.rstrip("0123456789")
    running = fabric.running(name)
    for mark in TYPED[platform].marks:
        assert mark in running, f"{name} lost {mark}"
    asked = {
        "arista_eos": ("show configuration sessions detail", r"fabric-\S+ +pending"),
        "sonic": ("ls /run/lock; sudo config list-checkpoints; systemctl list-timers", r"fabric"),
        "cumulus": ("ls /tmp; nv config revision", r"fabric-\S+\.lock| confirm "),
    }
    line, pattern = asked[platform]
    said = fabric.somebody(name, *line.split("; "))
    assert not re.search(pattern, said), f"{name} keeps something of a run:\n{said}"


def test_every_switch_platform_is_tried() -> None:
    every = {name: platforms.platform(name) for name in platforms.bases()}
    cli = {name for name, one in every.items() if one.channel == "cli" and "rocev2" in one.traits.transports}
    assert cli == set(TYPED) == set(MODELS)


def test_a_change_by_somebody_is_named_and_repaired(
    fabric: Fabric, spoiled: tuple[str, str], platform: str
) -> None:
    port, setting, found, wanted = TYPED[platform].drift
    seen = fabric.drift(*limit(spoiled), status=1).drifts
    assert set(seen) == set(spoiled)
    for rows in seen.values():
        assert ("running", port, setting, found, wanted) in rows
        assert {row[1:] for row in rows} == {(port, setting, found, wanted)}
    done = fabric.apply(*push(spoiled), status=0)
    assert set(done.statuses) == set(spoiled) and set(done.statuses.values()) <= set(GOOD)
    again = fabric.apply(*push(spoiled), status=0)
    assert again.statuses == dict.fromkeys(spoiled, "unchanged")


def phases_of(platform: str) -> tuple[str, ...]:
    return tuple(TYPED[platform].phases)


DROPS = [
    (platform, phase, after)
    for platform in sorted(TYPED)
    for phase in TYPED[platform].phases
    for after in ((False, True) if phase in ("commit", "confirm") else (False,))
]


@pytest.mark.parametrize(("platform", "phase", "after"), DROPS, indirect=["platform"])
def test_a_session_that_drops(
    fabric: Fabric, spoiled: tuple[str, str], platform: str, phase: str, after: bool
) -> None:
    first, second = spoiled
    with fabric.broken(first, "drop", TYPED[platform].phases[phase], after=after, times=1):
        found = fabric.apply(*push(spoiled))
    assert set(found.statuses) == set(spoiled)
    assert found.statuses[second] in GOOD
    # Where the change had reached its confirm or beyond, it may hold; else the node is back where it was.
    if found.status == 0:
        assert phase in ("confirm", "save") and found.statuses[first] in GOOD
    else:
        assert found.status == 1
        assert found.statuses[first] in ("rolled-back", "failed", "unreachable")
        assert found.rows[first]["detail"]
    nothing_left(fabric, first)
    drifted = set(fabric.drift(*limit(spoiled)).drifts)
    assert drifted == (set() if found.status == 0 else {first})
    assert fabric.apply(*push(spoiled), status=0).statuses[second] == "unchanged"


REFUSALS = [
    (platform, phase) for platform in sorted(TYPED) for phase in TYPED[platform].phases if phase != "lock"
]


@pytest.mark.parametrize(("platform", "phase"), REFUSALS, indirect=["platform"])
def test_a_line_that_is_refused(fabric: Fabric, spoiled: tuple[str, str], platform: str, phase: str) -> None:
    first, second = spoiled
    with fabric.broken(first, "refuse", TYPED[platform].phases[phase], times=2 if phase == "save" else 1):
        found = fabric.apply(*push(spoiled), status=1)
    assert set(found.statuses) == set(spoiled)
    assert found.statuses[second] in GOOD
    row = found.rows[first]
    assert row["status"] in ("rolled-back", "failed")
    assert f"{phase}: " in row["detail"] or phase == "stage"
    nothing_left(fabric, first)
    if phase != "save":
        assert set(fabric.drift(*limit(spoiled)).drifts) == {first}


IGNORED = [
    ("arista_eos", r"^qos trust dscp"),
    ("arista_eos", r" commit timer "),
    ("arista_eos", r"^configure session \S+ commit$"),
    ("sonic", r"config apply-patch /"),
    ("cumulus", r"^nv set interface swp1 link mtu"),
    ("cumulus", r"nv config apply --confirm \d"),
    ("cumulus", r"--confirm-yes"),
]


@pytest.mark.parametrize(("platform", "line"), IGNORED, indirect=["platform"])
def test_a_line_that_is_accepted_and_ignored(
    fabric: Fabric, spoiled: tuple[str, str], platform: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "SOAK_S", 0.5)
    first, second = spoiled
    with fabric.broken(first, "ignore", line, times=1):
        found = fabric.apply(*push(spoiled), status=1)
    assert found.statuses[second] in GOOD
    assert found.statuses[first] in ("rolled-back", "failed")
    nothing_left(fabric, first)
    assert set(fabric.drift(*limit(spoiled)).drifts) == {first}


@pytest.mark.parametrize("platform", ["sonic"], indirect=True)
def test_a_save_that_is_accepted_and_ignored(
    fabric: Fabric, spoiled: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "SOAK_S", 0.5)
    first, second = spoiled
    fabric.somebody(first, "sudo config save -y")
    with fabric.broken(first, "ignore", r"config save"):
        found = fabric.apply(*push(spoiled), status=1)
    assert found.statuses[second] in GOOD
    assert found.statuses[first] == "failed"
    assert "not saved" in found.rows[first]["detail"] or "reboot would bring" in found.rows[first]["detail"]
    assert fabric.apply(*push(spoiled)).statuses[first] in GOOD
    assert fabric.drift(*limit(spoiled)).drifts == {}


def test_a_commit_that_waits(fabric: Fabric, spoiled: tuple[str, str]) -> None:
    first, second = spoiled
    lab.break_(fabric.folder, first, "hold")
    process = fabric.start("apply", "--lab", "--yes", "--format", "json", *push(spoiled))
    wait_for(lambda: fabric.held(first))
    assert process.poll() is None
    assert lab.release(fabric.folder, first) == 1
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, f"{out}\n{err}"
    assert first in out and second in out


def test_what_was_not_saved_is_gone_after_a_reboot(
    fabric: Fabric, spoiled: tuple[str, str], platform: str
) -> None:
    first, second = spoiled
    typed = TYPED[platform]
    save = {"arista_eos": "copy running-config startup-config", "sonic": "sudo config save -y"}
    fabric.somebody(first, save.get(platform, "nv config save"))
    with fabric.broken(first, "refuse", typed.phases["save"]):
        found = fabric.apply(*push(spoiled), status=1)
    assert found.rows[first]["status"] == "failed" and "save" in found.rows[first]["detail"]
    stored = fabric.drift(*limit(spoiled), status=None).drifts
    assert stored == {first: [("stored", *typed.drift)]}
    lab.reboot(fabric.folder, first)
    lost = fabric.drift(*limit(spoiled)).drifts
    assert [row[1:] for row in lost[first]] == [typed.drift] and lost[first][0][0] == "running"
    assert second not in lost
    repaired = fabric.apply(*push(spoiled), status=0)
    assert repaired.statuses[first] in GOOD
    lab.reboot(fabric.folder, first)
    clean(fabric, spoiled)


def test_a_switch_that_cannot_be_reached(fabric: Fabric, spoiled: tuple[str, str]) -> None:
    first, second = spoiled
    with fabric.broken(first, "unreachable"):
        drift = fabric.drift(*limit(spoiled), status=1)
        assert {node["node"] for node in drift.data["nodes"] if node["failure"]} == {first}
        assert fabric.drift("--limit", first, status=2).data["clean"] is False
        found = fabric.apply(*push(spoiled), status=1)
    assert found.statuses[first] == "unreachable" and "refused" in found.rows[first]["detail"]
    assert found.statuses[second] in GOOD


def test_a_slow_switch(fabric: Fabric, spoiled: tuple[str, str]) -> None:
    with fabric.broken(spoiled[0], "slow", seconds=0.05):
        found = fabric.apply(*push(spoiled), status=0)
    assert set(found.statuses.values()) <= set(GOOD)


def test_lines_of_others_survive_a_run_and_its_rollback(fabric: Fabric, spoiled: tuple[str, str]) -> None:
    before = {name: fabric.running(name) for name in spoiled}
    run = fabric.apply(*push(spoiled), status=0).data["run"]
    assert {name: fabric.running(name) for name in spoiled} != before
    fabric.rollback(run, "--allow", "port-bounce", status=0)
    assert {name: fabric.running(name) for name in spoiled} == before


@pytest.mark.parametrize("point", ["stage", "diff"])
def test_what_somebody_changes_meanwhile_survives(
    fabric: Fabric, spoiled: tuple[str, str], platform: str, point: str
) -> None:
    """Held while it stages, and right before it commits; a candidate may be a snapshot."""
    typed = TYPED[platform]
    first, _ = spoiled
    diff = {"arista_eos": r"^show session-config", "sonic": r"apply-patch -d", "cumulus": r"^nv config diff$"}
    line = typed.phases["stage"] if point == "stage" else diff[platform]
    lab.break_(fabric.folder, first, "hold", line, after=point == "diff", times=1)
    process = fabric.start("apply", "--lab", "--yes", "--format", "json", *push(spoiled))
    wait_for(lambda: fabric.held(first))
    fabric.somebody(first, *typed.late)
    lab.release(fabric.folder, first)
    out, err = process.communicate(timeout=60)
    assert typed.late_mark in fabric.running(first), f"{out}\n{err}"


def test_a_lock_of_another_run_on_the_device(fabric: Fabric, spoiled: tuple[str, str], platform: str) -> None:
    first, second = spoiled
    take, leave = LOCKS[platform]
    fabric.somebody(first, *take)
    found = fabric.apply(*push(spoiled), status=1)
    assert found.statuses[second] in GOOD
    assert found.statuses[first] == "failed"
    assert re.search(r"fabric-other|fabric run other|staged:|pending", found.rows[first]["detail"])
    fabric.somebody(first, *leave)


LOCKS = {
    "arista_eos": (
        ("configure session fabric-other", "interface Ethernet3/1", "description locked", "end"),
        ("configure session fabric-other abort",),
    ),
    "sonic": (
        ("mkdir /run/lock/fabric", "echo 'fabric run other' > /run/lock/fabric/owner"),
        ("sudo rm -rf /run/lock/fabric",),
    ),
    "cumulus": (("echo 'fabric run other' > /tmp/fabric-other.lock",), ("rm -f /tmp/fabric-other.lock",)),
}
"""Platform -> (another run takes its lock, it leaves)."""
