"""What 1,000 hosts cost before Ansible begins (`make bench`): bundles, Ansible runs, CPU of the controller.

No host is needed: it counts what Ansible is given. No limit of time, but of numbers: one bundle per distinct
change, one run per wave.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from rdma_fabric import platforms
from rdma_fabric.checker import build, check
from rdma_fabric.cli.common import load
from rdma_fabric.plan.changes import make_plan
from rdma_fabric.plan.disturb import Budget
from rdma_fabric.plan.scope import make_scope
from rdma_fabric.push.files import FilePusher
from rdma_fabric.push.reach import Job
from rdma_fabric.state import Mtu, NodeState, Observation
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.targets import Target
from tests.support.fabrics import CABLES, DEMO

pytestmark = pytest.mark.benchmark


def fabric_of(folder: Path, rows: Mapping[str, Mapping[str, object]]) -> Path:
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
    return folder


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
