"""CPU seconds and memory of load, check and compile at 1,000, 4,000 and 16,400 hosts (`make bench`).

A benchmark, no timed test: it fails only when the fabric is not sound or the work grows faster than the
fabric. Each size runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RAILS = 8
HOSTS_PER_LEAF = 100
SIZES = (1000, 4000, 16400)
"""Hosts; the last is 16,384 in whole groups of leaves."""

_INTENT = """\
version: 1
name: scale
rdma: {transport: rocev2, mtu: 4096}
mtu: {switch: max, host: 9000}
classes:
  roce: {priority: 3, dscp: [26], lossless: true, bandwidth: 50%}
  cnp: {priority: 6, dscp: [48], scheduler: strict}
  default: {priority: 0, dscp: rest, bandwidth: 50%}
ecn:
  400G: {kmin: 600KB, kmax: 2400KB, pmax: 100%}
pfc:
  watchdog: {detect: 200ms, restore: 400ms, action: drop}
  headroom: auto
  dcbx: none
dcqcn: {enabled: true}
networks: {compute: {}}
"""

_RUN = """
import json, resource, sys, time
from pathlib import Path
from rdma_fabric import platforms, render
from rdma_fabric.checker import build, check
from rdma_fabric.inventory.load import load
from rdma_fabric.resolve import load_intent, resolve

folder, out = Path(sys.argv[1]), Path(sys.argv[2])
marks, start = {}, time.process_time()

def mark(name):
    global start
    now = time.process_time()
    marks[name], start = round(now - start, 2), now

intent, document = load_intent(folder / "fabric.yaml")
inventory = load(folder, platforms.bases())
mark("load")
resolved = resolve(intent, document, inventory)
mark("resolve")
judged = build(resolved)
mark("realize")
report = check(judged)
mark("check")
compiled = render.compile_fabric(judged, list(judged.views))
mark("render")
render.write(out, judged, compiled, ())
mark("write")
views = {id(view): view for ports in judged.ports.values() for view in ports.values()}
print(json.dumps({
    "seconds": marks,
    "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    "nodes": len(judged.views),
    "ports": sum(map(len, judged.ports.values())),
    "links": len(judged.links()),
    "unique_settings": len({view.state for view in views.values()}),
    "unique_ports": len(views),
    "loud": [one.message for one in report.findings if one.severity > 1],
}))
"""


def _write(folder: Path, hosts: int) -> None:
    """`hosts` hosts with 8 rails; a leaf per rail and 100 hosts; a spine per four leaves."""
    groups = hosts // HOSTS_PER_LEAF
    leaves = groups * RAILS
    spines = leaves // 4
    (folder / "fabric.yaml").write_text(_INTENT, encoding="utf-8")
    (folder / "hosts.yaml").write_text(
        f'spine[001-{spines:03}]: {{groups: [spine], hostname: "10.0.0.[1-{spines}]"}}\n'
        f"leaf[0001-{leaves:04}]: {{groups: [leaf]}}\n"
        f"gpu[00001-{hosts:05}]: {{groups: [gpu]}}\n",
        encoding="utf-8",
    )
    switch = 'model: DCS-7060X6-64PE, version: "4.32.1F"'
    port = "{speed: 400G, network: compute}"
    nic = 'speed: 400G, network: compute, nic: mlx5, rdma: "mlx5_[0-7]", rail: "[0-7]"'
    (folder / "groups.yaml").write_text(
        f"spine: {{platform: arista_eos, data: {{role: spine, {switch}, ports: "
        f'{{"Ethernet[1-{leaves}]/1": {port}}}}}}}\n'
        f"leaf: {{platform: arista_eos, data: {{role: leaf, {switch}, ports: "
        f'{{"Ethernet[1-{HOSTS_PER_LEAF + spines}]/1": {port}}}}}}}\n'
        "gpu: {platform: linux, data: {role: host, stack: inbox, mtu_manager: networkd, ports: "
        f'{{"eth[0-7]": {{{nic}}}}}}}}}\n',
        encoding="utf-8",
    )
    rows = ["a_node,a_port,b_node,b_port,length_m"]
    for group in range(groups):
        names = f"gpu[{group * 100 + 1:05}-{group * 100 + 100:05}]"
        for rail in range(RAILS):
            leaf = f"leaf{group * RAILS + rail + 1:04}"
            rows.append(f"{names},eth{rail},{leaf},Ethernet[1-100]/1,15")
    for number in range(1, leaves + 1):
        ports = f"Ethernet[{HOSTS_PER_LEAF + 1}-{HOSTS_PER_LEAF + spines}]/1"
        rows.append(f"leaf{number:04},{ports},spine[001-{spines:03}],Ethernet{number}/1,40")
    (folder / "cables.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _measure(folder: Path, hosts: int) -> dict[str, Any]:
    folder.mkdir()
    _write(folder, hosts)
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(folder), str(folder / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.benchmark
def test_check_and_compile_at_scale(tmp_path: Path) -> None:
    measured = {hosts: _measure(tmp_path / str(hosts), hosts) for hosts in SIZES}
    for hosts, found in measured.items():
        seconds = found["seconds"]
        steps = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
        print(  # noqa: T201
            f"\n{hosts} hosts: {found['nodes']} nodes, {found['ports']} ports, {found['links']} links, "
            f"{found['unique_settings']} unique settings, {found['unique_ports']} unique ports\n"
            f"  {sum(seconds.values()):.2f} s of CPU ({steps}), peak {found['peak_mib']} MiB"
        )
        # A flat spine layer for 16,400 hosts has switches with more ports than any buffer serves.
        assert found["loud"] == [] or hosts > 10_000
    small, large = measured[1000], measured[4000]
    assert large["unique_settings"] == small["unique_settings"]
    assert large["unique_ports"] == small["unique_ports"]
