"""What Ansible does on lab hosts: its own counts, drift, rollback, jump hosts, a controller that dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
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
CHECK = "fabric-host check --format json"
ROW = ("port", "setting", "found", "wanted")
AT_WORK = "&& sleep 0"
"""Ansible ends every command of its own with this."""
RELAY = """import os, socket, sys, threading
host, port, address, where, log = sys.argv[1:]
with open(log, "a") as file:
    file.write(open("/proc/%d/comm" % os.getppid()).read().strip() + " " + host + "\\n")
link = socket.create_connection((address, int(where)))
def copy(read, write):
    while data := read():
        write(data)
def out(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
threading.Thread(target=copy, args=(lambda: os.read(0, 65536), link.sendall), daemon=True).start()
copy(lambda: link.recv(65536), out)
"""


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
    # The host judges itself by the values that were brought back.
    assert json.loads(fabric.somebody("gpu02", CHECK))["wrong"] == []
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
    assert json.loads(fabric.somebody("gpu02", CHECK))["wrong"] == []
    fabric.somebody("gpu02", LIVE_WRONG)
    wrong = json.loads(fabric.somebody("gpu02", f"{CHECK}; true"))["wrong"]
    assert ("eth0", "mtu", "1500", "9000") in [tuple(row[key] for key in ROW) for row in wrong]


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


# ---------------------------------------------------------------- reached as real hosts are


@pytest.fixture
def real(applied: Applied, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fabric]:
    """Without --lab; hosts.yaml and known_hosts are the test's."""
    fabric = applied.fabric
    hosts = (fabric.folder / "hosts.yaml").read_text("utf-8")
    for name in ("SSH_AUTH_SOCK", "FABRIC_KEY_FILE", "FABRIC_USERNAME", "FABRIC_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copy(lab.known_hosts(fabric.folder), fabric.folder / "known_hosts")
    yield fabric
    fabric.write(hosts=hosts)
    (fabric.folder / "known_hosts").unlink()


def as_real(fabric: Fabric, hostname: str, port: int, username: str, **extras: str) -> None:
    """hosts.yaml in which gpu01 is reached that way."""
    rows = (fabric.folder / "hosts.yaml").read_text("utf-8").splitlines()
    options = json.dumps({"netmiko": {"extras": extras}})
    row = (
        f"gpu01: {{groups: [gpu], hostname: {hostname}, port: {port}, username: {username}, "
        f"connection_options: {options}}}"
    )
    fabric.write(hosts="\n".join([*(one for one in rows if not one.startswith("gpu01")), row]) + "\n")


def test_both_channels_go_over_the_jump_host(real: Fabric, tmp_path: Path) -> None:
    """The name resolves nowhere: only the proxy of the SSH configuration leads there."""
    end = lab.endpoints(real.folder)["gpu01"]
    relay, log, config = tmp_path / "relay.py", tmp_path / "log", tmp_path / "ssh config"
    relay.write_text(RELAY, "utf-8")
    config.write_text(
        f"Host *.invalid\n  ProxyCommand {sys.executable} {relay} %h %p {end.host} {end.port} {log}\n",
        "utf-8",
    )
    known = real.folder / "known_hosts"
    known.write_text(
        known.read_text("utf-8").replace(f"[{end.host}]:{end.port} ", "[gpu01.invalid]:2222 "), "utf-8"
    )
    as_real(real, "gpu01.invalid", 2222, "root", key_file=end.key_file, ssh_config_file=str(config))
    only = ("--limit", "gpu01")
    real.run("observe", "-o", str(tmp_path / "seen.json"), *only, status=0)
    callers = log.read_text("utf-8").splitlines()
    assert callers and all(one.endswith(" gpu01.invalid") for one in callers)
    assert not any(one.startswith("ssh ") for one in callers)
    real.somebody("gpu01", LIVE_WRONG)
    applied = real.run("apply", "--yes", "--format", "json", *only, status=0)
    assert applied.statuses == {"gpu01": "applied"}
    callers = log.read_text("utf-8").splitlines()
    assert any(one == "ssh gpu01.invalid" for one in callers)
    config.unlink()
    away = real.run("apply", "--yes", "--format", "json", *only, status=1)
    assert away.statuses == {"gpu01": "unreachable"} and "SSH configuration" in away.rows["gpu01"]["detail"]


def test_an_account_that_may_only_read(real: Fabric, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("hardware: other accounts in a sandbox need root's range of user ids")
    end = lab.endpoints(real.folder)["gpu01"]
    as_real(real, end.host, end.port, "slurm", key_file=end.key_file)
    only = ("--limit", "gpu01")
    real.somebody("gpu01", LIVE_WRONG)
    real.run("observe", "-o", str(tmp_path / "seen.json"), *only, status=0)
    drift = real.run("drift", "--format", "json", *only)
    assert LIVE_DRIFT in drift.drifts["gpu01"]
    runs, lines = len(real.runs()), len(real.lines("gpu01"))
    refused = real.run("apply", "--yes", "--format", "json", *only, status=1)
    row = refused.rows["gpu01"]
    assert row["status"] == "rejected" and "slurm" in row["detail"] and "sudo -n" in row["detail"]
    assert len(real.runs()) == runs
    sent = real.lines("gpu01")[lines:]
    assert not any(word in line for line in sent for word in ("fabric-host", "ansible", "> /etc"))
