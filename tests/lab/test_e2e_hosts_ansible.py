"""What Ansible does on lab hosts: its own counts, both kinds of drift, rollback, a controller that dies."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric.lab import fabric as lab
from rdma_fabric.push.files import FilePusher
from rdma_fabric.push.journal import Play
from tests.support.fabrics import Fabric, lab_up, make, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.judge("linux-sandbox")]

CABLES = "gpu01,eth0,leaf01,Ethernet1/1,5\ngpu02,eth0,leaf01,Ethernet2/1,5\n"
HOSTS = ("gpu01", "gpu02")
LIMIT = ("--limit", "gpu*")
SECRET = "Pw-in-the-environment-4715"
LIVE_WRONG = "ip link set dev eth0 mtu 1500"
STORED_WRONG = "sed -i s/9000/4200/ /etc/fabric/mtu.conf /etc/systemd/network/*/zz-fabric.conf"
LIVE_DRIFT = ("running", "eth0", "mtu", "1500", "9000")
STORED_DRIFT = [("stored", port, "mtu", "4200", "9000") for port in ("eth0", "eth1")]
MANAGEMENT = (
    "ip -o -d link show mgmt0 | sed 's/qlen.*//'; ip -o addr show mgmt0 | sed 's/ tentative//'; "
    "sysctl -a 2>/dev/null | grep '[.]mgmt0[.]'; grep -rl mgmt0 /etc | sort | xargs cksum"
)
FILES = "find /etc /usr/local/sbin -type f | sort | xargs cksum"
AT_WORK = "&& sleep 0"
"""Ansible ends every command of its own with this."""


@dataclass(frozen=True, slots=True)
class Applied:
    """A fabric after its first apply, and what was there before and meanwhile."""

    fabric: Fabric
    management: str
    artifacts: Path


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applied]:
    folder = tmp_path_factory.mktemp("ansible")
    made = make(folder / "fabric", {"leaf01": "arista_eos"}, hosts=HOSTS, cables=CABLES)
    made.environment["FABRIC_PASSWORD"] = SECRET

    class Spied(tempfile.TemporaryDirectory):  # type: ignore[type-arg]
        def __exit__(self, *arguments: Any) -> None:
            if not Path(self.name).name.startswith("fabric-"):
                shutil.copytree(self.name, folder / "kept")
            super().__exit__(*arguments)

    with lab_up(made, needs=HOSTS):
        management = made.somebody("gpu01", MANAGEMENT)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rdma_fabric.push.files.tempfile.TemporaryDirectory", Spied)
            made.apply(status=0)
        yield Applied(made, management, folder / "kept")


def plays(fabric: Fabric) -> list[tuple[int, int]]:
    """(hosts, changed) of every Ansible run of the newest run, by Ansible's own count."""
    return [(one["hosts"], one["changed"]) for one in fabric.runs()[-1]["ansible"]]


def test_the_first_apply_takes_one_ansible_run_and_leaves_management_alone(applied: Applied) -> None:
    assert plays(applied.fabric) == [(2, 2)]
    told = applied.fabric.run("runs", applied.fabric.runs()[-1]["run"], status=0).out
    assert "Ansible: 2 hosts, 2 changed" in told
    assert "mgmt0" in applied.management
    assert applied.fabric.somebody("gpu01", MANAGEMENT) == applied.management
    assert not any("mgmt0" in line for line in applied.fabric.lines("gpu01"))


def test_secrets_are_not_in_the_artifacts(applied: Applied) -> None:
    texts = [path.read_bytes() for path in applied.artifacts.rglob("*") if path.is_file()]
    assert any(b"playbook_on_stats" in text for text in texts) and any(
        b"ANSIBLE_CONFIG" in text for text in texts
    )
    assert not any(SECRET.encode() in text for text in texts)


def test_the_same_bundle_again_changes_nothing(applied: Applied, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of drift are put right; by Ansible's own count --check is honest and a second run idle."""
    fabric = applied.fabric
    runs = len(fabric.runs())
    assert set(fabric.apply(status=0).statuses.values()) == {"unchanged"} and len(fabric.runs()) == runs
    fabric.somebody("gpu01", STORED_WRONG)
    fabric.somebody("gpu02", LIVE_WRONG)
    assert fabric.drift().drifts == {"gpu01": STORED_DRIFT, "gpu02": [LIVE_DRIFT]}
    counted: list[Play | None] = []
    push = FilePusher.push

    def again(self: FilePusher, jobs: Any, *words: Any) -> Any:
        before = fabric.somebody("gpu01", FILES), fabric.somebody("gpu02", FILES)
        for check in (True, False, False):
            found = push(self, jobs, *words, check=check)
            counted.append(next(iter(found.values())).play)
            if check:
                assert (fabric.somebody("gpu01", FILES), fabric.somebody("gpu02", FILES)) == before
                assert fabric.somebody("gpu02", "cat /sys/class/net/eth0/mtu") == "1500\n"
        return found

    monkeypatch.setattr(FilePusher, "push", again)
    fabric.apply(*LIMIT, status=0)
    assert counted == [Play(2, 2), Play(2, 2), Play(2, 0)]
    assert fabric.drift(status=0).drifts == {}


def test_rolled_back_then_the_controller_dies_while_ansible_runs(applied: Applied) -> None:
    """Ansible ends with it, nothing arrives later, and the next apply recovers and finishes."""
    fabric = applied.fabric
    assert fabric.rollback(status=0).statuses == {"gpu01": "unchanged", "gpu02": "applied"}
    assert plays(fabric) == [(1, 1)] and fabric.drift(*LIMIT).drifts == {"gpu02": [LIVE_DRIFT]}
    lab.break_(fabric.folder, "gpu02", "hold", AT_WORK, times=1)
    process = fabric.start("apply", "--lab", "--yes", *LIMIT)
    wait_for(lambda: fabric.held("gpu02") or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    assert ansible(fabric)
    process.kill()
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    wait_for(lambda: not ansible(fabric) and not list((fabric.folder / ".fabric").glob("ansible-*")))
    died = fabric.runs()[-1]
    assert died["unfinished"] and died["nodes"]["gpu02"]["phase"] == "committing" and died["ansible"] == []
    lab.release(fabric.folder, "gpu02")
    assert fabric.drift(*LIMIT).drifts == {"gpu02": [LIVE_DRIFT]}
    done = fabric.apply(*LIMIT, status=0)
    assert done.statuses == {"gpu01": "unchanged", "gpu02": "applied"} and plays(fabric) == [(1, 1)]
    found = {one["run"]: one for one in fabric.runs()}
    assert found[died["run"]]["recovered_by"] == done.data["run"]
    assert fabric.drift(*LIMIT, status=0).drifts == {}


def ansible(fabric: Fabric) -> list[str]:
    """Processes of Ansible that work for this fabric, and their guard."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "ansible" in words and str(fabric.folder) in words:
            found.append(words)
    return found
