"""A host's packets get another DSCP only where the switches of the plan know it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.plan.changes import Plan, PlanRow, Target, make_plan
from rdma_fabric.plan.disturb import Budget
from rdma_fabric.platforms._contract import Disturbance, Disturbs
from rdma_fabric.state import UNKNOWN, NodeState, Observation, PortState
from tests.support.plans import Bench, bench, observed, pfc, ports_with

MAPPED = "qos.dscp_to_priority"


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Every device still has the marks and the map of another DSCP; a map costs packets, a mark nothing."""
    made = bench(tmp_path, monkeypatch)

    def disturbs(path: str) -> Disturbance:
        level = Disturbs.LOSS if MAPPED in path else Disturbs.NOTHING
        return Disturbance(level, (), "packets change their priority", "test")

    monkeypatch.setattr(made.rules, "_disturbs", disturbs)
    for name, state in made.devices.items():
        made.devices[name] = _mapped(state, (0,) * 64) if name.startswith("leaf") else _marking(state, 96)
    return made


def _mapped(state: NodeState, table: Any) -> NodeState:
    def edit(port: PortState) -> PortState:
        qos = replace(port.settings.qos, dscp_to_priority=table)
        return replace(port, settings=replace(port.settings, qos=qos))

    return ports_with(state, edit)


def _marking(state: NodeState, tos: int) -> NodeState:
    def edit(port: PortState) -> PortState:
        marking = replace(port.settings.marking, rdma_cm_tos=tos)
        return replace(port, settings=replace(port.settings, marking=marking))

    return ports_with(state, edit)


def _by_status(plan: Plan) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in plan.rows:
        found.setdefault(row.status, []).append(row.node)
    return found


HOSTS = ["gpu01", "gpu02", "gpu03", "gpu04"]


def test_no_host_marks_what_a_refused_switch_does_not_take(net: Bench) -> None:
    plan = net.plan()
    assert _by_status(plan) == {"refused": [*HOSTS, "leaf01", "leaf02"]}
    row = plan.row("gpu01")
    assert row is not None and "leaf[01-02] would not take the new marks" in row.reason
    assert plan.waves == ()


def test_switches_first_and_then_the_hosts(net: Bench) -> None:
    plan = net.plan(allow=Disturbs.LOSS)
    assert _by_status(plan) == {"change": [*HOSTS, "leaf01", "leaf02"]}
    assert set(plan.waves[-1]) == set(HOSTS)


def test_one_switch_that_stays_behind_is_enough(net: Bench) -> None:
    assert _by_status(net.plan(drained="leaf01 gpu01"))["change"] == ["gpu01", "leaf01"]


def test_a_switch_whose_map_could_not_be_read_counts(net: Bench) -> None:
    state = net.resolved.plans["leaf01"].state
    net.devices |= {"leaf01": state, "leaf02": state}
    assert _by_status(net.plan()) == {"unchanged": ["leaf01", "leaf02"], "change": HOSTS}
    net.seen["leaf02"] = observed(_mapped(state, UNKNOWN))
    assert _by_status(net.plan()) == {"unchanged": ["leaf01"], "unknown": ["leaf02"], "refused": HOSTS}


def test_a_switch_that_cannot_be_reached_counts(net: Bench) -> None:
    lost = (PlanRow("leaf02", "unreachable", "timeout"),)
    net.devices |= {"leaf01": net.resolved.plans["leaf01"].state}
    assert _by_status(net.plan(fixed=lost)) == {
        "unchanged": ["leaf01"],
        "unreachable": ["leaf02"],
        "refused": HOSTS,
    }


def _asked(net: Bench, asked: list[str], *silent: str) -> Any:
    def ask(names: tuple[str, ...]) -> tuple[dict[str, Target], dict[str, Observation]]:
        asked.extend(names)
        return net.targets(*names), {name: net.observe()[name] for name in names if name not in silent}

    return ask


def test_switches_beyond_the_limit_are_read(net: Bench) -> None:
    asked: list[str] = []
    plan = net.plan(*HOSTS, ask=_asked(net, asked))
    assert asked == ["leaf01", "leaf02"]
    assert _by_status(plan) == {"refused": HOSTS}  # and no row of a switch that is not in scope
    state = net.resolved.plans["leaf01"].state
    net.devices |= {"leaf01": state, "leaf02": state}
    assert _by_status(net.plan(*HOSTS, ask=_asked(net, asked))) == {"change": HOSTS}
    assert _by_status(net.plan(*HOSTS, ask=_asked(net, asked, "leaf02"))) == {"refused": HOSTS}


def test_idle_hosts_ask_nobody(net: Bench) -> None:
    asked: list[str] = []
    plan = net.plan(*HOSTS, ask=_asked(net, asked), drained=" ".join(HOSTS))
    assert _by_status(plan) == {"change": HOSTS} and asked == []


@pytest.fixture
def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Every device still has DSCP 26 at priority 4, which is lossless there; the intent says 3."""
    made = bench(tmp_path, monkeypatch)
    for name, state in made.devices.items():
        made.devices[name] = pfc(_mapped(state, _with_26_at(state, 4)), {4})
    return made


def _with_26_at(state: NodeState, priority: int) -> tuple[int, ...]:
    table = state.ports[0].settings.qos.dscp_to_priority
    assert isinstance(table, tuple)
    return (*table[:26], priority, *table[27:])


def test_the_same_dscp_at_another_lossless_priority_is_a_break(moved: Bench) -> None:
    plan = moved.plan(allow=Disturbs.REBOOT)
    assert _by_status(plan) == {"refused": [*HOSTS, "leaf01", "leaf02"]}
    row = plan.row("leaf01")
    assert row is not None and "DSCP 26 would move from lossless priority 4 to 3" in row.reason


def test_a_drained_fabric_may_move(moved: Bench) -> None:
    plan = moved.plan(allow=Disturbs.REBOOT, drained=" ".join(HOSTS))
    assert _by_status(plan) == {"change": [*HOSTS, "leaf01", "leaf02"]}


def test_one_working_host_is_enough_for_a_break(moved: Bench) -> None:
    plan = moved.plan(allow=Disturbs.REBOOT, drained="gpu01 gpu02 gpu03")
    assert set(_by_status(plan)) == {"refused"}


def test_a_deviant_is_repaired(moved: Bench) -> None:
    plans = moved.resolved.plans
    moved.devices |= {name: plans[name].state for name in moved.devices if name != "leaf02"}
    assert _by_status(moved.plan(allow=Disturbs.REBOOT))["change"] == ["leaf02"]


@pytest.mark.parametrize(("others", "status"), [("moved too", "refused"), ("as wished", "change")])
def test_neighbours_beyond_the_limit_tell_a_repair_from_a_move(
    moved: Bench, others: str, status: str
) -> None:
    if others == "as wished":
        wished = {name: plan.state for name, plan in moved.resolved.plans.items() if name != "leaf02"}
        moved.devices |= wished
    asked: list[str] = []
    seen = moved.observe()
    plan = make_plan(
        moved.inventory,
        moved.targets("leaf02"),
        {"leaf02": seen["leaf02"]},
        inputs="i",
        budget=Budget(Disturbs.REBOOT),
        ask=_asked(moved, asked),
    )
    assert _by_status(plan) == {status: ["leaf02"]}
    assert asked == HOSTS


def test_a_priority_that_was_lossy_is_no_break(moved: Bench) -> None:
    for name, state in moved.devices.items():
        moved.devices[name] = pfc(state, ())
    assert _by_status(moved.plan(allow=Disturbs.REBOOT)) == {"change": [*HOSTS, "leaf01", "leaf02"]}
