"""Plans: who may be changed, in which order, and when a saved plan does not hold any more."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdma_fabric import platforms
from rdma_fabric.findings import InputError
from rdma_fabric.inventory.types import End, Inventory, Link, Node, Port, Spec
from rdma_fabric.plan.changes import Plan, PlanRow
from rdma_fabric.plan.file import dump_plan, load_plan, stale
from rdma_fabric.plan.waves import arrange, direction, tiers
from rdma_fabric.platforms._contract import Change, Disturbs
from rdma_fabric.state import UNKNOWN, Difference, Observation
from tests.support.inputs import GROUPS, HOSTS
from tests.support.plans import Bench, bench, mtu, observed, pfc
from tests.support.states import steady

HOSTS_ALL = ("gpu01", "gpu02", "gpu03", "gpu04")


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return bench(tmp_path, monkeypatch)


def _all(net: Bench, edit: Callable[..., Any], value: Any, *ports: str) -> None:
    for name, state in net.devices.items():
        net.devices[name] = edit(state, value, *ports)


def _statuses(plan: Plan) -> dict[str, str]:
    return {row.node: row.status for row in plan.rows}


def _row(plan: Plan, name: str) -> PlanRow:
    row = plan.row(name)
    assert row is not None
    return row


class TestOrder:
    """Growing goes from the core to the hosts, shrinking back."""

    def test_nothing_to_do(self, net: Bench) -> None:
        plan = net.plan()
        assert plan.empty
        assert set(_statuses(plan).values()) == {"unchanged"}
        assert [row.node for row in plan.rows] == list(net.inventory.nodes)

    def test_growing_starts_at_the_core(self, net: Bench) -> None:
        _all(net, mtu, 1500)
        assert net.plan().waves == (("leaf01", "leaf02"), HOSTS_ALL)

    def test_shrinking_starts_at_the_hosts(self, net: Bench) -> None:
        _all(net, mtu, 9999)
        assert net.plan().waves == (HOSTS_ALL, ("leaf01", "leaf02"))

    def test_both_in_one_plan(self, net: Bench) -> None:
        net.devices["leaf01"] = mtu(net.devices["leaf01"], 1500)
        net.devices["leaf02"] = mtu(net.devices["leaf02"], 9999)
        net.devices["gpu01"] = mtu(net.devices["gpu01"], 9999)
        plan = net.plan()
        assert plan.waves == (("leaf01",), ("gpu01",), ("leaf02",))
        assert [_row(plan, name).wave for name in ("leaf01", "gpu01", "leaf02", "gpu02")] == [1, 2, 3, 0]

    @pytest.mark.parametrize(
        ("differences", "way"),
        [
            ([("a.mtu.ip", 9000, 1500)], "grow"),
            ([("a.mtu.ip", 1500, 9000)], "shrink"),
            ([("a.qos.classes.3.pfc_rx", True, False)], "grow"),
            ([("a.qos.classes.3.pfc_tx", False, True)], "shrink"),
            ([("a.qos.classes.3.pfc_tx", False, True), ("a.mtu.ip", 9000, 1500)], "mixed"),
            ([("a.qos.trust", "dscp", "pcp"), ("a.mtu.ip", 9000, 1500)], "grow"),
            ([("a.mtu.ip", 9000, UNKNOWN)], "neutral"),
            ([], "neutral"),
        ],
    )
    def test_direction(self, differences: list[tuple[str, Any, Any]], way: str) -> None:
        assert direction(Difference(*one) for one in differences) == way

    def test_tiers_count_cables_from_the_hosts(self) -> None:
        spec = {"host": Spec("box", role="host"), "switch": Spec("switch")}
        names = {"h1": "host", "leaf": "switch", "spine": "switch", "alone": "switch"}
        nodes = {name: Node(name, name, spec[kind]) for name, kind in names.items()}
        links = (Link(End("leaf", "1"), End("h1", "1")), Link(End("spine", "1"), End("leaf", "2")))
        assert tiers(Inventory(nodes, links)) == {"h1": 0, "leaf": 1, "spine": 2, "alone": 99}


class TestSharing:
    """Equal nodes that were seen alike share one change."""

    def test_one_change_for_all(self, net: Bench) -> None:
        _all(net, mtu, 1500)
        plan = net.plan()
        assert len({id(_row(plan, name).change) for name in HOSTS_ALL}) == 1
        assert net.rules.changes == 2

    def test_another_observation_is_another_change(self, net: Bench) -> None:
        _all(net, mtu, 1500)
        net.devices["gpu02"] = mtu(net.devices["gpu02"], 4200)
        plan = net.plan()
        assert _row(plan, "gpu02").change is not _row(plan, "gpu01").change
        assert _row(plan, "gpu03").change is _row(plan, "gpu01").change

    def test_stored_and_evidence_count_too(self, net: Bench) -> None:
        state = net.devices["gpu02"]
        net.seen["gpu02"] = Observation(state, stored=state, evidence=net.observe()["gpu02"].evidence)
        plan = net.plan()
        assert _row(plan, "gpu02").change is not _row(plan, "gpu01").change


class TestBudget:
    """What disturbs working nodes needs a word from the operator."""

    def test_nothing_is_disturbed_unasked(self, net: Bench) -> None:
        net.devices["gpu01"] = pfc(net.devices["gpu01"], [], "eth0")
        row = _row(net.plan(), "gpu01")
        assert row.status == "refused"
        assert "a change of PFC (eth0) is port-bounce on a node with workload" in row.reason
        assert "--assume-drained gpu01, or --allow port-bounce" in row.reason
        assert net.plan().empty

    @pytest.mark.parametrize(
        ("allow", "status"),
        [(Disturbs.LOSS, "refused"), (Disturbs.PORT_BOUNCE, "change"), (Disturbs.REBOOT, "change")],
    )
    def test_allow(self, allow: Disturbs, status: str, net: Bench) -> None:
        net.devices["gpu01"] = pfc(net.devices["gpu01"], [])
        assert _row(net.plan(allow=allow), "gpu01").status == status

    def test_a_drained_host_is_free(self, net: Bench) -> None:
        _all(net, pfc, [])
        plan = net.plan("gpu01", "gpu02", drained="gpu01")
        assert _statuses(plan) == {"gpu01": "change", "gpu02": "refused"}
        assert _row(plan, "gpu01").felt_by == ()

    def test_a_switch_is_felt_by_those_on_its_ports(self, net: Bench) -> None:
        net.devices["leaf01"] = pfc(net.devices["leaf01"], [], "e1", "e2")
        plan = net.plan()
        assert _row(plan, "leaf01").felt_by == ("gpu01", "gpu02")
        assert (
            "felt by gpu01, gpu02; drain it and say --assume-drained leaf01,gpu01,gpu02"
            in _row(plan, "leaf01").reason
        )
        assert _row(net.plan(drained="gpu01"), "leaf01").felt_by == ("gpu02",)
        assert _row(net.plan(drained="gpu01 gpu02"), "leaf01").status == "change"
        assert _row(net.plan(drained="leaf01"), "leaf01").status == "change"

    def test_a_switch_as_a_whole_is_felt_by_all_its_neighbours(self, net: Bench) -> None:
        net.rules.whole = True
        _all(net, pfc, [])
        plan = net.plan("leaf01", "leaf02", allow=Disturbs.REBOOT)
        assert _row(plan, "leaf01").felt_by == ("leaf01", *HOSTS_ALL)
        assert plan.waves == (("leaf01",), ("leaf02",))

    def test_a_port_without_a_cable_is_the_switch_itself(self, net: Bench) -> None:
        cut = replace(net.inventory, links=())
        net.resolved = replace(net.resolved, inventory=cut)
        net.devices["leaf01"] = pfc(net.devices["leaf01"], [], "e1")
        assert _row(net.plan(), "leaf01").felt_by == ("leaf01",)

    @pytest.mark.parametrize("state", ["planned", "maintenance"])
    def test_nodes_without_workload_are_free(
        self, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        groups = GROUPS.replace("role: host", f"role: host\n    state: {state}")
        net = bench(tmp_path, monkeypatch, groups=groups, hosts=HOSTS)
        _all(net, pfc, [])
        plan = net.plan()
        assert set(_statuses(plan).values()) == {"change"}
        assert plan.waves == (("leaf01", "leaf02"), HOSTS_ALL)

    def test_the_undo_counts_as_well(self, net: Bench) -> None:
        net.rules.undo = Disturbs.REBOOT
        _all(net, mtu, 1500)
        row = _row(net.plan("gpu01"), "gpu01")
        assert row.status == "refused"
        assert "is reboot on a node with workload" in row.reason

    def test_both_leaves_of_a_host_never_go_together(self, net: Bench) -> None:
        _all(net, pfc, [])
        plan = net.plan("leaf01", "leaf02", allow=Disturbs.PORT_BOUNCE)
        assert plan.waves == (("leaf01",), ("leaf02",))


class TestUnknown:
    """What could not be read is not written."""

    def test_nothing_known(self, net: Bench) -> None:
        net.devices["gpu01"] = mtu(net.devices["gpu01"], UNKNOWN)
        net.seen["gpu01"] = observed(net.devices["gpu01"], notes=("output was cut",))
        row = _row(net.plan(), "gpu01")
        assert row.status == "unknown"
        assert row.reason == (
            "could not read ports.eth0.mtu.ip, ports.eth1.mtu.ip, ports.eth2.mtu.ip (output was cut); "
            "these are not written"
        )

    def test_what_another_owns_is_told_with_its_reason(
        self, net: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        paths = ("system.sysctl.a", "system.sysctl.b", "ports.eth0.mtu.ip", "ports.eth1.mtu.ip")
        blocked = tuple(Difference(path, 1, 2) for path in paths)
        reasons = (
            *((path, "second owner: /etc/x:1") for path in paths[:2]),
            (paths[2], "carries us"),
        )
        monkeypatch.setattr(platforms, "change", lambda *_: Change(blocked=blocked, reasons=reasons))
        row = _row(net.plan("gpu01"), "gpu01")
        assert row.status == "unknown"
        assert row.reason == (
            "could not read ports.eth1.mtu.ip; system.sysctl.a, system.sysctl.b: second owner: /etc/x:1; "
            "ports.eth0.mtu.ip: carries us; these are not written"
        )

    def test_what_waits_for_a_reset_is_not_pushed_again(
        self, net: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wanted = net.devices["gpu01"]
        net.seen["gpu01"] = replace(observed(mtu(wanted, 1500)), pending=wanted)
        monkeypatch.setattr(platforms, "change", lambda *_: Change())
        plan = net.plan("gpu01")
        assert (_row(plan, "gpu01").status, plan.empty) == ("pending-reset", True)

    def test_the_rest_is_written(self, net: Bench) -> None:
        net.devices["gpu01"] = mtu(mtu(net.devices["gpu01"], 1500), UNKNOWN, "eth0")
        row = _row(net.plan(), "gpu01")
        assert row.status == "change"
        assert "could not read ports.eth0.mtu.ip; these are not written" in row.reason
        assert row.change is not None
        assert not [line for line in row.change.lines if "eth0" in line]

    def test_doubtful_lines_need_a_word(self, net: Bench) -> None:
        net.rules.unverified = True
        _all(net, mtu, 1500)
        row = _row(net.plan("gpu01"), "gpu01")
        assert row.status == "refused"
        assert "set ports.eth0.mtu.ip 9000 (--accept-unverified sends it)" in row.reason
        assert _row(net.plan("gpu01", accept_unverified=True), "gpu01").status == "change"

    def test_rows_decided_before_stay(self, net: Bench) -> None:
        fixed = (PlanRow("gpu02", "unreachable", "timeout"), PlanRow("leaf02", "rejected", "FAB021"))
        net.devices.pop("gpu02")
        plan = net.plan(fixed=fixed)
        assert [row.node for row in plan.rows] == list(net.inventory.nodes)
        assert _statuses(plan) == dict.fromkeys(net.inventory.nodes, "unchanged") | {
            "gpu02": "unreachable",
            "leaf02": "rejected",
        }


@steady
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=30),
    st.lists(st.sampled_from(["grow", "shrink", "neutral", "mixed"]), min_size=7, max_size=7),
)
def test_waves_hold_everybody_once_and_nobody_feels_two(
    cables: list[tuple[int, int]], ways: list[Any]
) -> None:
    switches, hosts = [f"s{n}" for n in range(7)], [f"h{n}" for n in range(10)]
    port = Port("p", network="c")
    specs = {"s": Spec("switch", ports={"p": port}), "h": Spec("box", role="host", ports={"p": port})}
    nodes = {name: Node(name, name, specs[name[0]]) for name in (*switches, *hosts)}
    links = tuple(Link(End(f"s{a}", str(i)), End(f"h{b}", str(i))) for i, (a, b) in enumerate(cables))
    felt = {name: frozenset(f"h{b}" for a, b in cables if f"s{a}" == name) for name in switches}
    waves = arrange(dict(zip(switches, ways, strict=True)), Inventory(nodes, links), felt)
    assert sorted(name for wave in waves for name in wave) == switches
    for wave in waves:
        told = [host for name in wave for host in felt[name]]
        assert len(told) == len(set(told))
    order = [way != "shrink" for wave in waves for way in {ways[int(name[1])] for name in wave}]
    assert order == sorted(order, reverse=True)


class TestSavedPlan:
    """`diff -o` and `apply --plan`."""

    def _saved(self, net: Bench, **more: Any) -> tuple[str, Plan]:
        plan = net.plan(**more)
        return dump_plan(plan), plan

    def _stale(self, text: str, plan: Plan) -> tuple[str, ...]:
        return stale(load_plan(text, "plan.json"), plan)

    def test_it_holds(self, net: Bench) -> None:
        _all(net, mtu, 1500)
        text, plan = self._saved(net)
        assert self._stale(text, plan) == ()
        assert self._stale(text, net.plan()) == ()
        assert dump_plan(net.plan()) == text

    def test_the_intent_changed(self, net: Bench) -> None:
        text, plan = self._saved(net)
        assert self._stale(text, replace(plan, inputs="j")) == (
            "the intent or inventory changed since the plan was written",
        )

    def test_a_node_changed(self, net: Bench) -> None:
        _all(net, mtu, 1500)
        text, _ = self._saved(net)
        net.devices["gpu02"] = mtu(net.devices["gpu02"], 4200)
        assert self._stale(text, net.plan()) == ("gpu02 changed since the plan was written",)

    def test_a_node_was_repaired_by_hand(self, net: Bench) -> None:
        _all(net, mtu, 1500)
        text, _ = self._saved(net)
        net.devices["gpu02"] = net.targets()["gpu02"].wanted
        assert self._stale(text, net.plan()) == ("gpu02 changed since the plan was written",)

    def test_other_options(self, net: Bench) -> None:
        net.devices["gpu01"] = pfc(net.devices["gpu01"], [])
        text, _ = self._saved(net)
        allowed = net.plan(allow=Disturbs.PORT_BOUNCE)
        assert self._stale(text, allowed) == ("gpu01 would be changed too",)
        text = dump_plan(allowed)
        (why,) = self._stale(text, net.plan())
        assert why.startswith("gpu01 would be left alone now: ")
        assert why.endswith("--assume-drained gpu01, or --allow port-bounce")

    def test_another_order_or_other_lines(self, net: Bench) -> None:
        _all(net, mtu, 1500)
        text, plan = self._saved(net)
        data = json.loads(text)
        data["nodes"]["leaf01"]["wave"] = 2
        data["nodes"]["gpu04"]["lines"] = ["reload"]
        assert self._stale(json.dumps(data), plan) == (
            "gpu04 would get other lines than the plan holds",
            "leaf01 would go in wave 1, not 2",
        )

    @pytest.mark.parametrize(
        "text",
        ["", "[]", "{}", '{"version": 2}', '{"version": 1, "nodes": {"a": 1}}', "[" * 100_000, "null", "1"],
    )
    def test_what_is_no_plan(self, text: str) -> None:
        with pytest.raises(InputError) as caught:
            load_plan(text, "plan.json")
        assert caught.value.findings[0].help == "give a file that `fabric diff -o` wrote"
