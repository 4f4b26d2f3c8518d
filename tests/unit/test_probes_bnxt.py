"""What a host with Broadcom NICs judges of itself, by the script that it is given, against stand-in tools."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.platforms import _host_probes as local
from rdma_fabric.platforms.nic_bnxt import PLATFORM
from rdma_fabric.state import PortSettings
from tests.support.local_check import module
from tests.unit.test_fabric_qos_bnxt import FORMS, SHELLS, Bench
from tests.unit.test_platform_nic_bnxt import DEBUGFS, HW, INBOX, OLD_FIRMWARE, WISH, node

MTU = "eth8 RDMA MTU"
"""No stand-in for it."""


def judged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, hw: Any = HW, wish: PortSettings = WISH
) -> tuple[list[str], list[str]]:
    """(settings that are wrong, settings that could not be judged) by the program itself."""
    for key, value in bench.environment.items():
        monkeypatch.setenv(key, value)
    (bench.sys / "sys/module/rdma_cm").mkdir(parents=True, exist_ok=True)
    wanted = PLATFORM.realize(node(wish), hw).state
    (put, _) = local.puts(PLATFORM.probes(wanted, hw))
    data = json.loads(put.text or "")
    machine = module().Machine(str(bench.sys), time.monotonic() + 60)
    machine.scripts = data["scripts"]
    wrong, unknown = module().check(data["probes"], machine)
    names = module().name
    return [f"{names(row)}: {row['found']}" for row in wrong], [names(row) for row in unknown]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return applied(Bench(tmp_path, SHELLS[0]))


def applied(bench: Bench) -> Bench:
    """The worked example is in force; `apply`, which is a plain file here, prints again."""
    bench.configfs()
    bench.run("eth8")
    file(bench, "apply", "send priority vlan (VLAN 0)\t: Disabled\n")
    return bench


def change(bench: Bench, **port: Any) -> None:
    """Somebody else writes the port's tables."""
    path = bench.tools / "port.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **port}))


def file(bench: Bench, name: str, value: str) -> None:
    """Somebody else writes a congestion control file."""
    bench.write(bench.sys, f"/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc/{name}", value)


def test_a_port_that_is_as_wanted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    done = bench.done
    assert judged(bench, monkeypatch) == ([], [])
    assert bench.done == done


def test_a_blank_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blank = Bench(tmp_path, SHELLS[0])
    blank.configfs(cc_mode="0x0")
    wrong, unknown = judged(blank, monkeypatch)
    assert [row for row in wrong if "scheduler" not in row] == [
        "eth8 DSCP map: 26->0, 48->0",
        "eth8 global pause: RX: on TX: on",
        "eth8 PFC priorities: none",
        "eth8 priority 3 queue: 0",
        "eth8 priority 6 queue: 0",
        "eth8 DCQCN notification point: none",
        "eth8 DCQCN reaction point: none",
        "eth8 CNP DSCP: 0",
        "eth8 CNP priority: 0",
        "eth8 DCQCN np_min_time_between_cnps: 0",
        "eth8 DCQCN rp_cc_mode: 0",
        "eth8 DCQCN rp_ecn_marking: 0",
        "eth8 DCQCN rp_roce_prio: none",
        "eth8 RDMA-CM ToS: 0",
    ]
    assert {row for row in wrong if "scheduler" in row} == {
        f"eth8 priority {priority} scheduler: strict" for priority in (0, 1, 2, 3, 4, 5, 7)
    }
    assert unknown == []


OFF = ["eth8 DCQCN notification point: none", "eth8 DCQCN reaction point: none"]
EDITS: list[tuple[dict[str, Any], dict[str, str], list[str]]] = [
    ({"pfc": [False] * 4 + [True] + [False] * 3}, {}, ["eth8 PFC priorities: 4"]),
    ({"map": [0, 0, 0, 1, 0, 0, 0, 2]}, {}, ["eth8 priority 6 queue: 0", "eth8 priority 7 queue: 2"]),
    ({"bw": [40, 60, 0, 0, 0, 0, 0, 0]}, {}, ["eth8 priority 0 scheduler: 40"]),
    ({"app": [[3, 4791, 3], [5, 26, 4], [5, 48, 6]]}, {}, ["eth8 DSCP map: 26->4"]),
    ({}, {"ecn_enable": "0x0"}, OFF),
    ({}, {"cnp_dscp": "0x2e"}, ["eth8 CNP DSCP: 46"]),
    ({}, {"ecn_marking": "0x0"}, ["eth8 DCQCN rp_ecn_marking: 0"]),
    ({}, {"disable_prio_vlan_tx": "0x0"}, ["eth8 trust: on"]),
    ({}, {"min_time_bet_cnp": "0x8"}, ["eth8 DCQCN np_min_time_between_cnps: 8"]),
]


@pytest.mark.parametrize(("port", "files", "told"), EDITS)
def test_what_somebody_changed(
    port: dict[str, Any],
    files: dict[str, str],
    told: list[str],
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change(bench, **port)
    for name, value in files.items():
        file(bench, name, value)
    wrong, unknown = judged(bench, monkeypatch)
    assert wrong[: len(told)] == told, wrong
    assert unknown == []


@pytest.mark.parametrize("form", FORMS[1:])
def test_by_broadcoms_tools(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who negotiates, none of them tells."""
    other = applied(Bench(tmp_path, SHELLS[0], form))
    assert judged(other, monkeypatch) == ([], ["eth8 DCBX mode"])


def test_two_entries_of_a_dscp_are_no_answer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    change(bench, app=[[3, 4791, 3], [5, 26, 3], [5, 26, 4], [5, 48, 6]])
    assert judged(bench, monkeypatch) == ([], ["eth8 DSCP map"])


def test_without_tools_and_files_nothing_is_judged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dcb", "niccli", "bnxtqos"):
        bench.tool(name, "#!/bin/sh\nexit 1\n")
    for path in (bench.sys / "sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc").iterdir():
        path.write_text("what is this")
    wrong, unknown = judged(bench, monkeypatch)
    assert wrong == []
    assert {"eth8 trust", "eth8 DSCP map", "eth8 PFC priorities", "eth8 CNP DSCP"} <= set(unknown)
    assert "eth8 DCQCN reaction point" in unknown


def test_the_kernels_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files act at once, and there is nothing to be told of tags."""
    inbox = Bench(tmp_path, SHELLS[0])
    inbox.debugfs()
    wanted = PLATFORM.realize(node(WISH), DEBUGFS).state
    rows = dict(PLATFORM.artifacts(wanted, DEBUGFS)[-1].context.rows)
    assert inbox.run("eth8", *(f"{key}={value}" for key, value in rows.items())).returncode == 0
    assert judged(inbox, monkeypatch, DEBUGFS) == ([], [])
    inbox.write(inbox.sys, "/sys/kernel/debug/bnxt_re/0000:06:00.0/cc_config/enable_cc", "0")
    assert judged(inbox, monkeypatch, DEBUGFS) == (OFF, [])
    change(inbox, app=[])
    assert "eth8 trust: pcp" in judged(inbox, monkeypatch, INBOX)[0]


def test_cards_without_the_service_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = Bench(tmp_path, SHELLS[0])
    old.configfs("0", cnp_prio="0x6", cnp_dscp="0x30", roce_dscp="0x1a", ecn_enable="0x1", ecn_marking="0x1")
    wrong, unknown = judged(old, monkeypatch, OLD_FIRMWARE)
    assert unknown == [] and not any(row.startswith("eth8 CNP") for row in wrong)
    file(old, "cnp_prio", "0x5")
    assert "eth8 CNP priority: 5" in judged(old, monkeypatch, OLD_FIRMWARE)[0]
