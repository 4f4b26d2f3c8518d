"""Pushes to hosts on the lab: one Ansible run per wave, the dead-man, runs that are killed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.lab import fabric as lab
from tests.support.fabrics import Fabric, lab_up, make, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.judge("linux-sandbox")]

CABLES = (
    "gpu01,eth0,leaf01,Ethernet1/1,5\ngpu01,eth1,leaf02,Ethernet1/1,5\n"
    "gpu02,eth0,leaf01,Ethernet2/1,5\ngpu02,eth1,leaf02,Ethernet2/1,5\n"
)
CONFIRM = r"fabric-host.*--mode confirm"
SPOIL = "mlnx_qos -i eth0 --pfc 0,0,0,0,1,0,0,0"
DRIFT = ("running", "eth0", "PFC priorities", "4", "3")
LIMIT = ("--limit", "gpu*")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    leaves = {"leaf01": "arista_eos", "leaf02": "arista_eos"}
    made = make(tmp_path_factory.mktemp("hosts"), leaves, hosts=("gpu01", "gpu02"), cables=CABLES)
    with lab_up(made, needs=("gpu01", "gpu02")):
        made.somebody("gpu01", "echo 'site = 1' > /etc/sysctl.d/10-site.conf")
        made.apply(status=0)
        yield made


@pytest.fixture
def spoiled(fabric: Fabric) -> Iterator[str]:
    fabric.somebody("gpu01", SPOIL)
    yield "gpu01"
    lab.mend(fabric.folder, "gpu01")
    fabric.apply(*LIMIT, status=0)
    assert fabric.drift(status=0).drifts == {}
    assert fabric.somebody("gpu01", "cat /etc/sysctl.d/10-site.conf") == "site = 1\n"


def killed(fabric: Fabric, *words: str) -> str:
    """The run that was killed between the commit and the confirm of gpu01."""
    lab.break_(fabric.folder, "gpu01", "hold", CONFIRM, times=1)
    process = fabric.start("apply", "--lab", "--yes", *LIMIT, *words)
    try:
        wait_for(lambda: fabric.held("gpu01") or process.poll() is not None)
    finally:
        process.kill()
    said = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL, said
    run = fabric.runs()[-1]
    assert run["unfinished"] and run["nodes"]["gpu01"]["phase"] == "confirming"
    assert run["nodes"]["gpu02"]["status"] == "unchanged"
    return str(run["run"])


def test_nobody_comes_back(fabric: Fabric, spoiled: str) -> None:
    """The dead-man takes the change back, and a confirm that comes later does not bring it again."""
    killed(fabric, "--timer", "30")
    wait_for(lambda: fabric.drift(*LIMIT).drifts == {spoiled: [DRIFT]})
    lab.mend(fabric.folder, spoiled)
    assert fabric.drift(*LIMIT).drifts == {spoiled: [DRIFT]}


def test_rollback_after_a_kill(fabric: Fabric, spoiled: str) -> None:
    run = killed(fabric)
    undone = fabric.rollback(run, status=0)
    assert set(undone.statuses) == {spoiled}
    assert fabric.drift(*LIMIT).drifts == {spoiled: [DRIFT]}
    assert {one["run"]: one for one in fabric.runs()}[run]["recovered_by"] == undone.data["run"]
    # The confirm that was held arrives at last, and there is nothing left to confirm.
    lab.mend(fabric.folder, spoiled)
    assert fabric.drift(*LIMIT).drifts == {spoiled: [DRIFT]}


def test_a_confirm_that_fails_and_a_host_that_is_away(fabric: Fabric, spoiled: str) -> None:
    with fabric.broken(spoiled, "drop", CONFIRM, times=1):
        found = fabric.apply(*LIMIT, status=1)
    assert found.statuses == {spoiled: "rolled-back", "gpu02": "unchanged"}
    assert fabric.drift(*LIMIT).drifts == {spoiled: [DRIFT]}
    with fabric.broken(spoiled, "unreachable"):
        away = fabric.apply(*LIMIT, status=1)
        assert away.statuses == {spoiled: "unreachable", "gpu02": "unchanged"}
        assert fabric.drift("--limit", spoiled, status=2).data["nodes"][0]["failure"]


def test_a_file_of_somebody_else_stays(fabric: Fabric, spoiled: str) -> None:
    path = "/etc/fabric/qos/eth0.conf"
    kept = fabric.somebody(spoiled, f"cat {path}")
    fabric.somebody(spoiled, f"echo 'mine = yes' > {path}")
    found = fabric.apply(*LIMIT, status=1)
    assert found.statuses[spoiled] in ("failed", "unknown")
    assert path in found.rows[spoiled]["detail"] or "eth0" in found.rows[spoiled]["detail"]
    assert fabric.somebody(spoiled, f"cat {path}") == "mine = yes\n"
    fabric.somebody(spoiled, f"cat > {path} <<'EOF'\n{kept}EOF")


def test_the_first_run_is_undone(fabric: Fabric) -> None:
    """All settings of hosts go back; modules stay loaded and leave the list of those to load at boot."""
    first = fabric.runs()[0]["run"]
    found = fabric.rollback(first, *LIMIT, status=0)
    assert found.statuses == {"gpu01": "applied", "gpu02": "applied"}
    settings = {(one["setting"], one["wanted"]) for one in found.rows["gpu01"]["settings"]}
    assert ("eth0 mtu", "1500") in settings
    assert ("module rdma_ucm", "off") in settings
    assert "rdma_ucm" not in fabric.somebody("gpu01", "cat /etc/modules-load.d/90-fabric.conf")
    assert "rdma_ucm" in fabric.somebody("gpu01", "lsmod")
    assert fabric.somebody("gpu01", "cat /sys/class/net/eth0/mtu") == "1500\n"
    judged = json.loads(fabric.somebody("gpu01", "fabric-host check --format json; true"))
    assert judged["wrong"] == [] and judged["checked"] > 10, judged
    fabric.apply(*LIMIT, status=0)
