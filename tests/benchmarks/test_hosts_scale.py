"""What hosts cost (`make bench`): bundles and Ansible runs of 1,000 hosts, and CPU against a plain playbook.

The first part needs no host: it counts. The second observes 1,000 hosts and changes the 10 that differ. Every
host is a session of its own with all questions, but a sandbox needs about 25 MiB: the names share 50
sandboxes, and the 10 that differ have one each. The plain playbook gathers facts and brings every compiled
file to those 50, which have them all by then; its time is scaled. Measured is user and system time of the
controller and all its children, not of the hosts. FABRIC_BENCH_HOSTS and FABRIC_BENCH_BOXES name other
numbers than 1,000 and 50.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

pytest.importorskip("asyncssh", reason="the extra rdma-fabric[lab] is not installed")

from rdma_fabric import platforms
from rdma_fabric.checker import build, check
from rdma_fabric.cli.common import load
from rdma_fabric.lab import fabric as lab
from rdma_fabric.lab.fabric import Endpoint
from rdma_fabric.plan.changes import make_plan
from rdma_fabric.plan.disturb import Budget
from rdma_fabric.plan.scope import make_scope
from rdma_fabric.push.files import FilePusher
from rdma_fabric.push.reach import Job
from rdma_fabric.state import Mtu, NodeState, Observation
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.targets import Target
from tests.support.fabrics import CABLES, DEMO, Fabric, lab_up, make

pytestmark = pytest.mark.benchmark

NODES = int(os.environ.get("FABRIC_BENCH_HOSTS", "1000"))
OWN = max(1, NODES // 100)
SHARED = min(int(os.environ.get("FABRIC_BENCH_BOXES", "50")), NODES - OWN)
SPOIL = "ip link set dev eth0 mtu 1500"


def fabric_of(folder: Path, rows: Mapping[str, Mapping[str, object]], known: str = "") -> Path:
    """A fabric of those hosts in groups `gpu` and `storage`, which differ in their MTU."""
    folder.mkdir()
    (folder / "fabric.yaml").write_text((DEMO / "fabric.yaml").read_text("utf-8"), "utf-8")
    (folder / "defaults.yaml").write_text("data: {state: planned}\n", "utf-8")
    port = "{speed: 400G, network: compute, nic: mlx5, rdma: mlx5_%d}"
    ports = {f"eth{number}": yaml.safe_load(port % number) for number in (0, 1)}
    data = {"role": "host", "stack": "inbox", "mtu_manager": "networkd", "ports": ports}
    groups = {
        "gpu": {"platform": "linux", "data": data},
        "storage": {"platform": "linux", "data": {**data, "set": {"mtu.host": 4200}}},
    }
    (folder / "groups.yaml").write_text(json.dumps(groups), "utf-8")
    (folder / "cables.csv").write_text(CABLES, "utf-8")
    (folder / "hosts.yaml").write_text(json.dumps(rows), "utf-8")
    (folder / "known_hosts").write_text(known, "utf-8")
    return folder


# ---------------------------------------------------------------- bundles and runs


def wrong(state: NodeState, ports: int) -> Observation:
    """A host at its wish but for the MTU of the first ports."""
    bad = replace(state.ports[0].settings, mtu=Mtu(ip=1500))
    seen = replace(
        state,
        ports=tuple(
            replace(port, settings=bad) if at < ports else port for at, port in enumerate(state.ports)
        ),
    )
    return Observation(seen, stored=state)


def test_one_bundle_per_distinct_change_and_one_run_per_wave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"gpu{number:04d}" for number in range(1000)]
    rows = {name: {"groups": ["storage" if at % 4 == 0 else "gpu"]} for at, name in enumerate(names)}
    start = time.process_time()
    judged = build(load(fabric_of(tmp_path / "fabric", rows)))
    targets = make_scope(judged, check(judged), names).targets
    kinds: dict[tuple[int, int], Observation] = {}
    seen = {}
    for at, name in enumerate(names):
        key = (id(targets[name].wanted), 1 + at // 4 % 2)
        seen[name] = kinds.setdefault(key, wrong(targets[name].wanted, key[1]))
    plan = make_plan(judged.resolved.inventory, targets, seen, inputs="", budget=Budget())
    counted: list[tuple[int, int]] = []

    def ansible(_: FilePusher, folder: Path, *__: object) -> str:
        hosts = json.loads((folder / "inventory" / "hosts.json").read_text("utf-8"))["all"]["hosts"]
        assert Counter(one["fabric_bundle"] for one in hosts.values()).keys() == {
            str(path) for path in (folder / "bundles").iterdir()
        }
        counted.append((len(hosts), len(list((folder / "bundles").iterdir()))))
        return ""

    monkeypatch.setattr(FilePusher, "_ansible", ansible)
    secrets = Secrets({"FABRIC_KEY_FILE": str(tmp_path / "key")}, home=tmp_path)
    pusher = FilePusher({name: Target(name, "192.0.2.1") for name in names}, secrets, tmp_path)
    for wave in plan.waves:
        jobs = {}
        for name in wave:
            row = plan.row(name)
            assert row is not None and row.change is not None
            hw = targets[name].hardware
            jobs[name] = Job(name, row.change, hw, platforms.platform(hw.base).dialect, row.channel, "")
        pusher.push(jobs, "r1", 300)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(names)} hosts in {len(kinds)} distinct changes: bundles and hosts per Ansible run "
            f"{[(bundles, hosts) for hosts, bundles in counted]}; {time.process_time() - start:.1f} s CPU "
            "from the inventory to what Ansible is given\n"
        )
    assert len(counted) == len(plan.waves) and sum(hosts for hosts, _ in counted) == len(names)
    assert sum(bundles for _, bundles in counted) == len(kinds) == 4


# ---------------------------------------------------------------- CPU against a plain playbook


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds (user and system, children included) and wall seconds of one command."""

    cpu: float
    wall: float


def measured(words: Sequence[str], environment: Mapping[str, str]) -> Cost:
    """Runs a program to its end, which must be a good one."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        list(words), env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu, time.monotonic() - start)


@pytest.fixture(scope="module")
def sandboxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """The hosts that are really there; the first of them are shared."""
    names = [f"box{number:03d}" for number in range(1, SHARED + OWN + 1)]
    made = make(tmp_path_factory.mktemp("boxes"), {}, hosts=names, cables=" ")
    (made.folder / "cables.csv").write_text(CABLES, "utf-8")
    with lab_up(made, needs=names):
        yield made


def many(folder: Path, ends: Sequence[Endpoint], known: str) -> Path:
    """A fabric of all hosts behind those addresses, of which nobody knows that they are fewer."""
    rows: dict[str, dict[str, object]] = {}
    for number in range(NODES):
        own = number - (NODES - OWN)
        end = ends[SHARED + own] if own >= 0 else ends[number % SHARED]
        where = {
            "hostname": end.host,
            "port": end.port,
            "username": end.username,
            "extras": {"key_file": str(end.key_file)},
        }
        rows[f"gpu{number:04d}"] = {
            "groups": ["gpu"],
            "hostname": f"gpu{number:04d}.invalid",
            "connection_options": {"netmiko": where},
        }
    return fabric_of(folder, rows, known)


def playbook(folder: Path, files: Path, ends: Sequence[Endpoint], known: Path) -> list[str]:
    """As one writes it without anything else: facts, folders, every file, live values."""
    paths = [path for path in sorted(files.rglob("*")) if path.is_file() and path.name != "check.json"]
    folders = sorted({f"/{path.parent.relative_to(files)}" for path in paths})
    tasks: list[dict[str, object]] = [
        {
            "name": "folders",
            "ansible.builtin.file": {"path": "{{ item }}", "state": "directory"},
            "loop": [one for one in folders if one.endswith(".d") or "fabric" in one],
        }
    ]
    tasks += [
        {
            "name": f"/{path.relative_to(files)}",
            "ansible.builtin.copy": {
                "src": str(path),
                "dest": f"/{path.relative_to(files)}",
                "mode": f"{path.stat().st_mode & 0o777:04o}",
            },
        }
        for path in paths
    ]
    for port in ("eth0", "eth1"):
        line = f"ip link set dev {port} mtu 9000"
        tasks.append({"name": line, "ansible.builtin.command": line, "changed_when": False})
        tasks.append(
            {"name": f"qos {port}", "ansible.builtin.command": f"fabric-qos {port}", "changed_when": False}
        )
    play = [{"hosts": "all", "gather_facts": True, "tasks": tasks}]
    options = f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={known}"
    hosts = {
        f"box{number:03d}": {
            "ansible_host": end.host,
            "ansible_port": end.port,
            "ansible_user": end.username,
            "ansible_ssh_private_key_file": str(end.key_file),
            "ansible_ssh_common_args": options,
        }
        for number, end in enumerate(ends, 1)
    }
    (folder / "site.yml").write_text(yaml.safe_dump(play, sort_keys=False), "utf-8")
    (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts}}), "utf-8")
    program = Path(sys.executable).with_name("ansible-playbook")
    return [str(program), "-f", "50", "-i", str(folder / "inventory.json"), str(folder / "site.yml")]


def test_many_hosts_of_which_one_in_a_hundred_differs(
    sandboxes: Fabric, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = list(lab.endpoints(sandboxes.folder).values())
    known = lab.known_hosts(sandboxes.folder)
    sandboxes.apply(status=0)
    for name in list(lab.endpoints(sandboxes.folder))[SHARED:]:
        sandboxes.somebody(name, SPOIL)
    folder = many(tmp_path / "fabric", ends, known.read_text("utf-8"))
    program = str(Path(sys.executable).with_name("fabric"))
    home = {"HOME": str(tmp_path)}
    ours = measured([program, "apply", str(folder), "--yes", "-q"], home)
    subprocess.run([program, "compile", str(folder), "-o", str(tmp_path / "out"), "-q"], check=True)
    words = playbook(tmp_path, tmp_path / "out" / "gpu0000", ends[:SHARED], known)
    settings = {**home, "ANSIBLE_PIPELINING": "1", "ANSIBLE_HOST_KEY_CHECKING": "1"}
    measured(words, settings)  # from now on every host is as it wants, as nearly all are with us
    plain = measured(words, settings)
    scale = NODES / SHARED
    ratio = plain.cpu * scale / ours.cpu
    with capsys.disabled():
        sys.stdout.write(
            f"\n{NODES} hosts observed, {OWN} changed: {ours.cpu:.0f} s CPU, {ours.wall:.0f} s\n"
            f"plain playbook over {SHARED}: {plain.cpu:.0f} s CPU, {plain.wall:.0f} s; "
            f"over {NODES} (times {scale:.1f}): {plain.cpu * scale:.0f} s CPU; ratio {ratio:.1f}\n"
        )
    assert ratio > 1
