"""`fabric apply` killed in the middle, on switches of every platform; two at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.lab import fabric as lab
from tests.support.fabrics import Fabric, lab_up, make, wait_for
from tests.support.switches import TYPED

pytestmark = pytest.mark.lab

PLATFORMS = sorted(TYPED)
POINTS = ("at commit", "after commit", "at confirm")
FREE = ("--allow", "port-bounce")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    switches = {f"{platform}{number}": platform for platform in PLATFORMS for number in (1, 2)}
    made = make(tmp_path_factory.mktemp("crash"), switches, state="active")
    with lab_up(made):
        made.apply(*FREE, status=0)
        for platform in PLATFORMS:
            made.somebody(f"{platform}1", *TYPED[platform].foreign)
        yield made


@pytest.fixture(params=PLATFORMS)
def platform(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def names(fabric: Fabric, platform: str) -> Iterator[tuple[str, str]]:
    """Two switches, the first of them with a setting that somebody changed; clean again afterwards."""
    pair = (f"{platform}1", f"{platform}2")
    fabric.somebody(pair[0], *TYPED[platform].spoil)
    yield pair
    lab.mend(fabric.folder, pair[0])
    fabric.apply("--limit", ",".join(pair), *FREE, status=0)


def killed(fabric: Fabric, names: tuple[str, str], line: str, *, after: bool, timer: int = 300) -> str:
    """The run that was killed while the first switch held at a line."""
    lab.break_(fabric.folder, names[0], "hold", line, after=after, times=1)
    process = fabric.start(
        *("apply", "--lab", "--yes", "--timer", str(timer), "--limit", ",".join(names), *FREE)
    )
    wait_for(lambda: fabric.held(names[0]) or process.poll() is not None)
    process.kill()
    said = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL, said
    run = fabric.runs()[-1]
    assert run["unfinished"] and run["nodes"][names[0]]["phase"] in ("committing", "confirming")
    assert run["nodes"][names[1]]["status"] == "unchanged"
    told = fabric.run("runs", run["run"], status=0).out
    assert "died" in told and names[0] in told
    return str(run["run"])


@pytest.mark.parametrize(("point", "then"), list(zip(POINTS, ("apply", "rollback", "rollback"), strict=True)))
def test_killed(fabric: Fabric, names: tuple[str, str], platform: str, point: str, then: str) -> None:
    """The device carries a line out that it has received, although the run is dead."""
    before = fabric.running(names[0])
    phase = "confirm" if point == "at confirm" else "commit"
    run = killed(fabric, names, TYPED[platform].phases[phase], after=point == "after commit")
    lab.release(fabric.folder, names[0])
    if then == "apply":
        done = fabric.apply("--limit", ",".join(names), *FREE, status=0)
        assert done.statuses[names[1]] == "unchanged"
        assert fabric.drift("--limit", ",".join(names), status=0).drifts == {}
    else:
        done = fabric.rollback(run, *FREE, status=0)
        assert fabric.running(names[0]) == before
    found = {one["run"]: one for one in fabric.runs()}
    assert found[run]["recovered_by"] == done.data["run"] and not found[run]["unfinished"]
    assert "recovered by" in fabric.run("runs", run, status=0).out


def test_nobody_comes_back(fabric: Fabric, names: tuple[str, str], platform: str) -> None:
    """The device's own timer takes the change back."""
    before = fabric.running(names[0])
    killed(fabric, names, TYPED[platform].phases["commit"], after=True, timer=3)
    assert fabric.running(names[0]) != before
    wait_for(lambda: fabric.running(names[0]) == before)


def test_another_intent_is_not_applied_over_a_run_that_died(fabric: Fabric) -> None:
    names = (f"{PLATFORMS[0]}1", f"{PLATFORMS[0]}2")
    fabric.somebody(names[0], *TYPED[PLATFORMS[0]].spoil)
    run = killed(fabric, names, TYPED[PLATFORMS[0]].phases["commit"], after=True)
    lab.release(fabric.folder, names[0])
    fabric.edit("fabric.yaml", "detect: 200ms", "detect: 400ms")
    refused = fabric.run("apply", "--lab", "--yes", *FREE, status=2)
    assert run in refused.err and "fabric rollback" in refused.err
    fabric.edit("fabric.yaml", "detect: 400ms", "detect: 200ms")
    fabric.apply(*FREE, status=0)


def test_two_at_once(fabric: Fabric) -> None:
    names = (f"{PLATFORMS[0]}1", f"{PLATFORMS[0]}2")
    fabric.somebody(names[0], *TYPED[PLATFORMS[0]].spoil)
    lab.break_(fabric.folder, names[0], "hold", times=1)
    process = fabric.start("apply", "--lab", "--yes", "--limit", ",".join(names), *FREE)
    wait_for(lambda: fabric.held(names[0]))
    holder = fabric.runs()[-1]["run"]
    for words in (("apply", "--lab", "--yes"), ("rollback", "--lab", "--yes"), ("diff", "--lab", "--stage")):
        second = fabric.run(*words)
        assert holder in second.err and str(process.pid) in second.err
        assert second.status == 2
    lab.release(fabric.folder, names[0])
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert fabric.apply(status=0).statuses[names[0]] == "unchanged"


@pytest.mark.parametrize("point", POINTS[1:])
def test_killed_and_applied_again(fabric: Fabric, point: str) -> None:
    platform = PLATFORMS[0]
    pair = (f"{platform}1", f"{platform}2")
    fabric.somebody(pair[0], *TYPED[platform].spoil)
    test_killed(fabric, pair, platform, point, "apply")
