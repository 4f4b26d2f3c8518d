"""A host's packets get another DSCP only where the switches of the plan know it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric.plan.changes import Plan
from rdma_fabric.platforms._contract import Disturbance, Disturbs
from rdma_fabric.state import UNKNOWN, NodeState, PortState
from tests.support.plans import Bench, bench, observed, ports_with

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
