"""Memory of a watcher over 200 rounds (`make bench`): it must not grow with their number."""

from __future__ import annotations

import gc
import resource
import shutil
import sys
import tracemalloc
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rdma_fabric import platforms
from rdma_fabric.cli import common
from rdma_fabric.resolve import Resolved
from rdma_fabric.state import Observation
from rdma_fabric.state_dir import state_dir
from rdma_fabric.watch.history import FILE, History
from rdma_fabric.watch.rounds import Watcher

DEMO = Path(__file__).parents[2] / "inventory/demo"
ROUNDS = 200


@pytest.mark.benchmark
def test_memory_does_not_grow(tmp_path: Path) -> None:
    """Every round other values are observed, every tenth the inputs change: nothing of it may stay."""
    folder = tmp_path / "demo"
    shutil.copytree(DEMO, folder, ignore=shutil.ignore_patterns(".fabric"))
    (folder / "defaults.yaml").write_text("data: {state: active}\n", "utf-8")
    intent = (folder / "fabric.yaml").read_text("utf-8")
    now = [0.0]

    def read(resolved: Resolved, names: Collection[str]) -> Mapping[str, Observation]:
        found = {}
        for name in names:
            plan = resolved.plans[name]
            state = platforms.realize(plan.state, plan.hardware).state
            port = state.ports[0]
            mtu = replace(port.settings.mtu, ip=1500 + int(now[0]))
            ports = (replace(port, settings=replace(port.settings, mtu=mtu)), *state.ports[1:])
            found[name] = Observation(replace(state, ports=ports))
        return found

    state = state_dir(folder)
    watcher = Watcher(
        folder=folder,
        state=state,
        applied=state / "applied",
        history=History(state / FILE),
        load=lambda: common.load(folder),
        select=lambda resolved: common.scope(resolved, ""),
        read=read,
        clock=lambda: now[0],
        interval=60.0,
    )
    sizes = []
    tracemalloc.start()
    for number in range(ROUNDS):
        now[0] += 1.0
        if number % 10 == 0:
            changed = intent.replace("host: 9000", f"host: {8000 + number}")
            (folder / "fabric.yaml").write_text(changed, "utf-8")
        watcher.round()
        if number in (ROUNDS // 4, ROUNDS - 1):
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    watcher.history.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told = f"after {ROUNDS // 4} rounds 1.00, after {ROUNDS} rounds {sizes[1] / sizes[0]:.2f}"
    sys.stdout.write(f"\n{told}; peak {peak:.0f} MiB\n")
    assert sizes[1] < 1.10 * sizes[0]
