"""Our output, judged by SONiC's own models: a realistic switch stays valid, foreign rows stay equal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rdma_fabric.hardware import Hardware, PortHardware, asic_of
from rdma_fabric.platforms import _sonic_read as read
from rdma_fabric.platforms._contract import Change
from rdma_fabric.platforms._sonic_patch import TEMPLATE
from rdma_fabric.platforms.sonic import PLATFORM
from rdma_fabric.state import (
    MTU_MAX,
    UNMANAGED,
    Amount,
    ClassState,
    Ecn,
    Mtu,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    Share,
    WatchdogTimers,
    differences,
)
from rdma_fabric.templating import render
from tests.judges import sonic_base, sonic_yang
from tests.judges.sonic_yang import BRANCHES, Branch
from tests.support.sonic_steps import merge, result_of

pytestmark = pytest.mark.judge("sonic-yang")

# Tables in which we write; in all others nothing may move, in these nothing of ports that are not ours.
OURS = {
    *read.MAP_TABLES,
    "BUFFER_PG",
    "BUFFER_PROFILE",
    "CABLE_LENGTH",
    "PFC_WD",
    "PORT",
    "PORT_QOS_MAP",
    "QUEUE",
    "SCHEDULER",
    "WRED_PROFILE",
}
ASIC_TYPES = {"ACS-SN5600": "mellanox"}


@pytest.fixture(autouse=True)
def _judge_is_there() -> None:
    reason = sonic_yang.missing() or sonic_base.missing()
    if reason:
        pytest.skip(reason)


class Case:
    """A realistic switch with two networks of ours: eight ports of the one, two of the other."""

    def __init__(self, hwsku: str, branch: Branch) -> None:
        self.branch = branch
        self.base = sonic_base.realistic_base(sonic_base.PORT_LISTS / f"{hwsku}.ini", hwsku, branch)
        speeds = {name: int(row["speed"]) // 1000 for name, row in self.base["PORT"].items()}
        self.ports = list(self.base["PORT"])[:10]
        self.hw = Hardware(
            ("sonic",),
            hwsku,
            branch,
            tuple(PortHardware(name, speed_gbps=speeds[name]) for name in self.ports),
            asic_of(hwsku),
        )
        self.asic = ASIC_TYPES.get(hwsku, "broadcom")

    def seen(self, rows: dict[str, Any]) -> Observation:
        version = (
            f"SONiC Software Version: SONiC.{self.branch}.1-abc\nHwSKU: {self.hw.model}\nASIC: {self.asic}\n"
        )
        return PLATFORM.parse({read.VERSION: version, read.CONFIG: json.dumps(rows)}, self.hw)

    def wish(self, *, roce: int = 26, kmin: int = 150_000, headroom: int | None = None) -> NodeState:
        compute = settings((3,), roce, kmin, headroom)
        storage = settings((3, 4), 24, kmin // 2, None)
        ports = (
            PortState(name, settings=storage if number > 7 else compute)
            for number, name in enumerate(self.ports)
        )
        return PLATFORM.realize(NodeState(ports=tuple(ports)), self.hw).state

    def foreign(self, rows: dict[str, Any]) -> dict[str, Any]:
        return {
            table: entries
            if table not in OURS
            else {key: row for key, row in entries.items() if self._theirs(table, key)}
            for table, entries in rows.items()
        }

    def _theirs(self, table: str, key: str) -> bool:
        ours = key.partition("|")[0] in self.ports or key.startswith("FABRIC")
        return not ours and (table, key) not in {("CABLE_LENGTH", "AZURE"), ("PFC_WD", "GLOBAL")}

    def check(self, rows: dict[str, Any]) -> None:
        assert sonic_yang.judge(rows, self.branch) == []
        assert self.foreign(rows) == self.foreign(self.base)
        assert set(rows) >= set(self.base)
        others = {
            name: length for name, length in rows["CABLE_LENGTH"]["AZURE"].items() if name not in self.ports
        }
        assert others and set(others.values()) == {"40m"}


def settings(lossless: tuple[int, ...], roce: int, kmin: int, headroom: int | None) -> PortSettings:
    classes = tuple(
        ClassState(
            pfc_tx=p in lossless,
            pfc_rx=p in lossless,
            watchdog=p in lossless,
            ecn=Ecn(Amount(kmin), Amount(10 * kmin), 10.0) if p in lossless else None,
            headroom=(Amount(headroom) if headroom else None) if p in lossless else UNMANAGED,
            share=Share("strict", 0, 20) if p == 6 else Share("dwrr", 45) if p in (0, *lossless) else None,
        )
        for p in range(8)
    )
    dscp = tuple({roce: 3, 34: lossless[-1], 48: 6, 56: 7}.get(code, 0) for code in range(64))
    timers = WatchdogTimers(300, 600, 200, "drop")
    qos = QosState("dscp", dscp, UNMANAGED, classes, timers, "none", False, 300)
    return PortSettings(mtu=Mtu(MTU_MAX), qos=qos)


@pytest.fixture(params=[(sku, branch) for sku in sonic_base.HWSKUS for branch in BRANCHES], ids="-".join)
def case(request: pytest.FixtureRequest) -> Case:
    hwsku, branch = request.param
    reason = sonic_yang.missing() or sonic_base.missing()
    if reason:
        pytest.skip(reason)
    return Case(hwsku, branch)


def changed(case: Case, rows: dict[str, Any], wanted: NodeState) -> tuple[Change, dict[str, Any]]:
    """The change and the CONFIG_DB after it, which shows what was wanted."""
    change = PLATFORM.change(case.seen(rows), wanted, case.hw)
    assert change.lines and not change.blocked
    after = result_of(change, rows)
    assert differences(wanted, case.seen(after).running) == ()
    return change, after


def test_day_zero_fragment_is_valid(case: Case) -> None:
    fragment = json.loads(render(TEMPLATE, PLATFORM.context(case.wish(), case.hw)))
    assert set(fragment) <= OURS & sonic_yang.tables(case.branch)
    rows = json.loads(json.dumps(case.base))
    merge(rows, fragment)
    # Before 202505 the fragment fills SONiC's own profile, the only one that the updater tunes later.
    case.base["WRED_PROFILE"].update(
        {name: row for name, row in rows["WRED_PROFILE"].items() if case.branch != "master"}
    )
    case.check(rows)


def test_change_is_valid_and_so_is_the_next_one(case: Case) -> None:
    _, first = changed(case, case.base, case.wish())
    case.check(first)
    moved = case.wish(roce=28, kmin=200_000, headroom=600_000)
    change, second = changed(case, first, moved)
    case.check(second)
    assert any(line.startswith("BUFFER_PROFILE|FABRIC_3_") for line in change.lines)


def test_going_back_is_valid(case: Case) -> None:
    wanted = case.wish()
    before = case.seen(case.base).running
    _, first = changed(case, case.base, wanted)
    _, back = changed(case, first, before)
    case.check(back)
    kept = {table: rows for table, rows in back.items() if table != "PFC_WD"}
    assert kept == {table: rows for table, rows in case.base.items() if table != "PFC_WD"}
    # These are the switch's times on our ports, and its poll interval, as they were.
    assert back["PFC_WD"] == case.base["PFC_WD"]


def test_a_wrong_row_of_ours_would_be_noticed(case: Case) -> None:
    """The judge sees the rows that we wrote: a broken one among them is refused."""
    _, rows = changed(case, case.base, case.wish())
    port = case.ports[0]
    for table, key, name, value in (
        ("PORT_QOS_MAP", port, "dscp_to_tc_map", "FABRIC_9"),
        ("QUEUE", f"{port}|3", "wred_profile", "NONE"),
        ("PFC_WD", port, "detection_time", "199"),
        ("PORT", port, "mtu", "9217"),
    ):
        broken = json.loads(json.dumps(rows))
        broken[table][key][name] = value
        assert sonic_yang.judge(broken, case.branch) != [], (table, name)
