"""Health: what counters, links, managers and MTUs say, each fault alone, and what cannot be judged."""

from __future__ import annotations

import datetime
import json
import signal
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric import platforms
from rdma_fabric.checker import build
from rdma_fabric.checker.waivers import apply_waivers, waive
from rdma_fabric.cli import main
from rdma_fabric.cli.common import load
from rdma_fabric.drift import find_drift
from rdma_fabric.findings import HEALTH, Finding, InputError, Place, Severity, health_check
from rdma_fabric.health import baseline, pairs, paths, verify
from rdma_fabric.health import load as load_step
from rdma_fabric.health.types import STEPS, Gaps, Health, Judgement, Metric, Scene, Step
from rdma_fabric.intent.models import NcclMark, Waiver
from rdma_fabric.inventory.types import End
from rdma_fabric.observe import Sign
from rdma_fabric.plan.changes import Target
from rdma_fabric.resolve import Resolved
from rdma_fabric.state import NodeState, Observation
from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.errors import TransportError
from rdma_fabric.transport.targets import Target as Address
from rdma_fabric.views.output import Output
from rdma_fabric.views.verify_text import verdict_of, verify_json, verify_text
from rdma_fabric.vitals import Count, Kind, Loaded, Pong, Vitals

ROOT = Path(__file__).resolve().parents[2]
TODAY = datetime.date(2026, 11, 30)
SECONDS = 10.0
CABLES = "cables.csv"


@cache
def fabric(name: str = "demo") -> Resolved:
    return load(ROOT / "inventory" / name)


@cache
def sound(name: str = "demo") -> Mapping[str, Observation]:
    """Every node has what the intent wants, at the planned speed."""
    found = {}
    for node, plan in fabric(name).plans.items():
        state = platforms.realize(plan.state, plan.hardware).state
        ports = []
        for port in state.ports:
            hw = plan.hardware.port(port.name)
            nic = replace(port.settings.nic, rdma_mtu=4096) if hw and hw.nic else port.settings.nic
            speed = hw.speed_gbps if hw else 0
            ports.append(replace(port, settings=replace(port.settings, nic=nic), speed_gbps=speed))
        system = state.system
        if system.sm.running is True:
            role = "master" if system.sm.priority == 14 else "standby"
            system = replace(system, sm=replace(system.sm, role=role))
        running = NodeState(system, tuple(ports))
        found[node] = Observation(running, running)
    return found


def with_port(seen: Observation, port: str, **parts: Any) -> Observation:
    ports = tuple(replace(one, **parts) if one.name == port else one for one in seen.running.ports)
    return replace(seen, running=replace(seen.running, ports=ports))


def scene(
    *counts: tuple[str, Count, int],
    seen: Mapping[str, Observation] | None = None,
    name: str = "demo",
    names: tuple[str, ...] = (),
    resolved: Resolved | None = None,
) -> Scene:
    """Counters of the first read, and by how much each grew until the second."""
    whole = resolved or fabric(name)
    first: dict[str, list[Count]] = {node: [] for node in whole.plans}
    second: dict[str, list[Count]] = {node: [] for node in whole.plans}
    for node, one, by in counts:
        first[node].append(one)
        second[node].append(replace(one, value=one.value + by))
    return verify.scene_of(
        build(whole, dict(seen or sound(name))),
        names or tuple(whole.plans),
        {node: Sign(Vitals(tuple(rows)), 100.0) for node, rows in first.items()},
        {node: Sign(Vitals(tuple(rows)), 100.0 + SECONDS) for node, rows in second.items()},
    )


def judged(at: Scene, *steps: Step, pause: int | None = None) -> dict[str, Judgement]:
    intent = at.judged.resolved.intent
    if pause is not None:
        marks = intent.verify.model_copy(update={"pause": pause})
        changed = replace(at.judged.resolved, intent=intent.model_copy(update={"verify": marks}))
        at = replace(at, judged=replace(at.judged, resolved=changed))
    return {one.step: one for one in verify.judge(at, drifts(at), steps or STEPS)}


def drifts(at: Scene) -> Any:
    targets = {name: Target(view.wanted, view.hw) for name, view in at.judged.views.items()}
    read = {name: targets[name] for name in at.observations}
    return find_drift(at.inventory, read, at.observations, {}, {})


def findings(at: Scene, *steps: Step, pause: int | None = None) -> list[Finding]:
    return [one for step in judged(at, *steps, pause=pause).values() for one in step.findings]


def told(found: list[Finding]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.name, str(one.severity), tuple(str(place) for place in one.places)) for one in found]


def count(kind: Kind, value: int = 100, port: str = "eth0", **more: Any) -> Count:
    return Count(port, kind, value, f"the {kind} counter", **more)


def test_a_sound_fabric_has_no_findings() -> None:
    quiet = [("gpu01", count("crc"), 0), ("gpu01", count("pause-rx", priority=3), 0)]
    assert findings(scene(*quiet)) == []
    assert findings(scene(name="ib-pod")) == []


# ---------------------------------------------------------------- counters


@pytest.mark.parametrize(
    ("kind", "name", "severity"),
    [
        ("crc", "frame-errors", "error"),
        ("symbol", "frame-errors", "error"),
        ("fec", "frame-errors", "error"),
        ("errors", "frame-errors", "error"),
        ("storms", "pause-storm", "error"),
        ("down", "link-flapped", "error"),
        ("pause-tx", "pause-grows", "warning"),
        ("pause-rx", "pause-grows", "warning"),
        ("discards", "discards-grow", "warning"),
        ("retries", "retries-grow", "warning"),
        ("marks", "congestion", "note"),
        ("waits", "congestion", "note"),
    ],
)
def test_what_grew_is_told_with_rate_place_and_both_ends(kind: Kind, name: str, severity: str) -> None:
    (one,) = findings(scene(("gpu01", count(kind), 25)))
    assert told([one]) == [(name, severity, ("gpu01 eth0",))]
    assert one.found == f"the {kind} counter +25 (2.5/s)"
    assert one.peer == "cabled to leaf01 Ethernet1/1"
    assert one.position is not None
    assert (Path(one.position.file).name, one.position.line) == (CABLES, 2)


@pytest.mark.parametrize(
    ("priority", "name"), [(3, "lossless-drops"), (0, "congestion"), (-1, "discards-grow")]
)
def test_drops_count_in_lossless_classes(priority: int, name: str) -> None:
    found = findings(scene(("gpu01", count("drops", priority=priority), 5)))
    assert [one.name for one in found] == [name]


def test_the_queue_of_a_platform_is_mapped_to_its_priority() -> None:
    """leaf01 serves priority 3 in the queue that its state says."""
    state = sound()["leaf01"].running.port("Ethernet1/1")
    assert state is not None
    queue = state.settings.qos.classes[3].queue
    assert isinstance(queue, int)
    drop = count("drops", port="Ethernet1/1", queue=queue)
    assert told(findings(scene(("leaf01", drop, 5)))) == [
        ("lossless-drops", "error", ("leaf01 Ethernet1/1",))
    ]
    (other,) = findings(scene(("leaf01", replace(drop, queue=(queue + 1) % 8), 5)))
    assert other.name == "congestion"


def test_pause_that_both_ends_count_is_told_at_its_sender() -> None:
    sent, got = count("pause-tx", port="Ethernet1/1"), count("pause-rx", priority=3)
    found = findings(scene(("leaf01", sent, 40), ("gpu01", got, 40)))
    assert told(found) == [("pause-grows", "warning", ("leaf01 Ethernet1/1",))]
    assert "sends PFC pause" in found[0].message


@pytest.mark.parametrize(("mark", "severity"), [(4, "error"), (5, "warning")])
def test_pause_above_the_mark_of_the_intent_is_an_error(mark: int, severity: str) -> None:
    found = findings(scene(("gpu01", count("pause-tx", priority=3), 40)), pause=mark)
    assert told(found) == [("pause-grows", severity, ("gpu01 eth0",))]
    assert found[0].wanted == f"below {mark}/s"


@pytest.mark.parametrize(("drops", "told_too"), [(15, False), (14, True)])
def test_discards_that_classes_explain_are_not_told_again(drops: int, told_too: bool) -> None:
    found = findings(scene(("gpu01", count("discards"), 30), ("gpu01", count("drops", priority=0), drops)))
    assert ("discards-grow" in {one.name for one in found}) is told_too


def test_an_infiniband_port_may_not_discard() -> None:
    port = next(iter(fabric("ib-pod").plans["gpu01"].ports))
    found = findings(scene(("gpu01", count("discards", port=port), 3), name="ib-pod"))
    assert told(found) == [("discards-grow", "error", (f"gpu01 {port}",))]


def test_the_total_of_errors_is_told_only_without_its_parts() -> None:
    both = findings(scene(("gpu01", count("errors"), 9), ("gpu01", count("crc"), 9)))
    assert [one.found for one in both] == ["the crc counter +9 (0.9/s)"]


def unjudged(at: Scene, step: Step = "counters") -> set[tuple[str, str]]:
    return {
        (one.what, one.why)
        for one in judged(at, step)[step].unjudged
        for place in one.places
        if place.node == "gpu01" and place.port in ("", "eth0")
    }


def test_a_cleared_counter_is_not_judged_and_never_negative() -> None:
    at = scene(("gpu01", count("crc"), -40))
    assert findings(at) == []
    row = next(row for row in unjudged(at) if row[0] == "the crc counter")
    assert "cleared" in row[1]


def test_a_full_counter_is_not_judged() -> None:
    at = scene(("gpu01", count("symbol", 65535, ceiling=65535), 0))
    assert any("full at 65535" in why for _, why in unjudged(at))


def test_a_counter_that_only_the_second_read_shows_is_not_judged() -> None:
    at = scene(("gpu01", count("crc"), 5))
    first = {name: Sign(Vitals(), 100.0) for name in at.first}
    at = replace(at, first=first)
    assert findings(at) == []
    assert ("the crc counter", "shown by the second read only") in unjudged(at)


def test_kinds_that_a_device_does_not_show_are_named() -> None:
    missing = {what for what, why in unjudged(scene(("gpu01", count("crc"), 0))) if "no such" in why}
    assert missing == {"pause-rx", "pause-tx", "marks", "drops", "discards", "symbol", "fec"}


def test_a_node_that_is_not_in_service_yields_notes() -> None:
    resolved = fabric()
    node = resolved.inventory.nodes["gpu01"]
    away = replace(node, spec=replace(node.spec, state="maintenance"))
    inventory = replace(resolved.inventory, nodes={**resolved.inventory.nodes, "gpu01": away})
    at = scene(("gpu01", count("crc"), 5), resolved=replace(resolved, inventory=inventory))
    assert told(findings(at)) == [("frame-errors", "note", ("gpu01 eth0",))]


# ---------------------------------------------------------------- configuration, links, MTU


def test_equal_drift_is_one_finding() -> None:
    seen = dict(sound())
    for name in ("gpu01", "gpu02"):
        port = seen[name].running.port("eth0")
        assert port is not None
        wrong = replace(port.settings, mtu=replace(port.settings.mtu, ip=4500))
        seen[name] = with_port(seen[name], "eth0", settings=wrong)
    (one,) = findings(scene(seen=seen))
    assert told([one]) == [("not-as-intended", "error", ("gpu01 eth0", "gpu02 eth0"))]
    assert (one.setting, one.found, one.wanted) == ("mtu.ip", "4500", "9000")


def test_a_slow_link_is_named_with_both_ends_and_its_cable() -> None:
    seen = dict(sound())
    seen["leaf01"] = with_port(seen["leaf01"], "Ethernet1/1", speed_gbps=100)
    (one,) = findings(scene(seen=seen))
    assert told([one]) == [("link-slow", "error", ("leaf01 Ethernet1/1",))]
    assert (one.found, one.wanted, one.peer) == (
        "leaf01 Ethernet1/1: 100G",
        "400G",
        "the other end, gpu01 eth0",
    )
    assert "gpu01 eth0 - leaf01 Ethernet1/1" in one.message
    assert one.position is not None
    assert (Path(one.position.file).name, one.position.line) == (CABLES, 2)
    seen["gpu01"] = with_port(seen["gpu01"], "eth0", speed_gbps=100)
    (both,) = findings(scene(seen=seen))
    assert told([both])[0][2] == ("gpu01 eth0", "leaf01 Ethernet1/1")


def test_lanes_are_told_where_they_are_known() -> None:
    seen = dict(sound("ib-pod"))
    port = next(iter(fabric("ib-pod").plans["gpu01"].ports))
    seen["gpu01"] = with_port(seen["gpu01"], port, speed_gbps=50)
    at = scene(seen=seen, name="ib-pod")
    at = replace(at, first={**at.first, "gpu01": Sign(Vitals(lanes=((port, 1),)), 100.0)})
    (one,) = findings(at)
    assert one.name == "link-slow"
    assert one.found == f"gpu01 {port}: 50G (1X)"


def test_a_link_that_is_down_is_not_slow_too() -> None:
    seen = dict(sound())
    seen["gpu01"] = replace(with_port(seen["gpu01"], "eth0", speed_gbps=100), facts=(("link eth0", "down"),))
    (one,) = findings(scene(seen=seen))
    assert told([one]) == [("link-down", "error", ("gpu01 eth0",))]


def test_only_cables_of_the_scope_are_judged() -> None:
    assert judged(scene(names=("gpu01",)), "speed")["speed"].judged == 2


def test_a_low_active_mtu_is_named() -> None:
    seen = dict(sound())
    port = seen["gpu01"].running.port("eth0")
    assert port is not None
    nic = replace(port.settings, nic=replace(port.settings.nic, rdma_mtu=1024))
    seen["gpu01"] = with_port(seen["gpu01"], "eth0", settings=nic)
    (one,) = findings(scene(seen=seen))
    assert told([one]) == [("rdma-mtu-low", "error", ("gpu01 eth0",))]
    assert (one.found, one.wanted) == ("active_mtu 1024", "4096 (rdma.mtu)")


# ---------------------------------------------------------------- subnet managers


def managers(**roles: str) -> dict[str, Observation]:
    """sm01 and sm02 with other roles; "" for a process that does not run."""
    seen = dict(sound("ib-pod"))
    for name, role in roles.items():
        one = seen[name]
        sm = replace(one.running.system.sm, running=bool(role), role=role or "none")
        state = replace(one.running, system=replace(one.running.system, sm=sm))
        seen[name] = replace(one, running=state)
    return seen


def test_without_a_master_only_the_managers_are_named() -> None:
    seen = managers(sm01="", sm02="")
    for name in ("gpu01", "gpu02"):  # their ports were given nothing
        ports = tuple(
            replace(one, settings=replace(one.settings, ib=replace(one.settings.ib, link="init", pkeys=())))
            for one in seen[name].running.ports
        )
        seen[name] = replace(seen[name], running=replace(seen[name].running, ports=ports))
    found = findings(scene(seen=seen, name="ib-pod"))
    assert told(found) == [("manager-missing", "error", ("sm01", "sm02"))]


def test_a_standby_that_stopped_is_a_warning() -> None:
    found = findings(scene(seen=managers(sm02=""), name="ib-pod"))
    assert told(found) == [("manager-missing", "warning", ("sm02",))]


def test_two_masters() -> None:
    found = findings(scene(seen=managers(sm02="master"), name="ib-pod"), "sm")
    assert told(found) == [("manager-missing", "error", ("sm01", "sm02"))]


def test_a_manager_that_was_not_read_is_not_missing() -> None:
    seen = managers()
    del seen["sm02"]
    step = judged(scene(seen=seen, name="ib-pod"), "sm")["sm"]
    assert (step.findings, step.judged) == ((), 1)
    assert [(one.what, [place.node for place in one.places]) for one in step.unjudged] == [
        ("subnet manager", ["sm02"])
    ]


# ---------------------------------------------------------------- paths


def addressed(seen: Mapping[str, Observation] | None = None, six: bool = False) -> Scene:
    """Every host port has an address."""
    at = scene(seen=seen)
    first = {}
    for name in at.first:
        rows: list[tuple[str, str]] = []
        if name.startswith("gpu"):
            for rail in (0, 1):
                rows.append((f"eth{rail}", f"10.{rail}.0.{int(name[3:])}"))
                if six:
                    rows.append((f"eth{rail}", f"fd00:{rail}::{int(name[3:])}"))
        first[name] = Sign(Vitals(addresses=tuple(rows)), 100.0)
    return replace(at, first=first)


def chosen(at: Scene) -> tuple[paths.Test, ...]:
    gaps = Gaps("paths")
    return paths.tests(at, pairs.choose(at, gaps), gaps)


def path_findings(at: Scene, lost: Any, **pong: Any) -> list[Finding]:
    """The tests for which `lost` says so fail as `pong` says."""
    results = {
        test: Pong(large=False, **pong) if lost(test) else Pong(large=True, small=True) for test in chosen(at)
    }
    return list(paths.judge(at, results, Gaps("paths")).findings)


def test_work_is_per_leaf_and_pair_of_leaves() -> None:
    at = addressed()
    made = pairs.choose(at, Gaps("paths"))
    # Two rails, each with two leaves of four hosts: a ring of four on each leaf, and one pair between them.
    assert len(made) == 2 * (4 + 4 + 1)
    rails = {(path.a.port, path.b.port) for path in made}
    assert rails == {("eth0", "eth0"), ("eth1", "eth1")}
    ends = {end for path in made for end in (path.a, path.b)}
    assert len(ends) == 16
    assert len(chosen(addressed(six=True))) == 2 * len(made)


def test_many_leaves_are_not_tested_in_all_pairs() -> None:
    ports = [[pairs._Port(End(f"h{number}", "eth0"), f"leaf{number}")] for number in range(100)]
    assert len(list(pairs._between(ports))) == 100 * pairs.NEXT
    assert len(list(pairs._between(ports[:20]))) == 190


def test_sizes_come_from_the_intent() -> None:
    sizes = {(test.ping.size, test.ping.tos) for test in chosen(addressed())}
    assert sizes == {(4192, 104)}


def test_a_port_without_address_or_partner_is_not_judged() -> None:
    gaps = Gaps("paths")
    assert pairs.choose(scene(), gaps) == ()
    assert [one.why for one in gaps.rows()] == ["the port has no address of its own"]
    alone = replace(addressed(), names=("gpu01",))
    gaps = Gaps("paths")
    assert pairs.choose(alone, gaps) == ()
    assert {one.why for one in gaps.rows()} == {"no other host of its rail was read"}


def test_the_end_that_fails_with_everybody_is_named() -> None:
    bad = End("gpu03", "eth0")
    (one,) = path_findings(addressed(), lambda test: bad in (test.path.a, test.path.b), small=True)
    assert told([one]) == [("path-mtu-low", "error", ("gpu03 eth0",))]
    assert one.peer == "cabled to leaf01 Ethernet3/1"
    assert one.position is not None
    assert (Path(one.position.file).name, one.position.line) == (CABLES, 2)
    assert "4192 bytes" in one.message


def test_the_way_between_two_leaves_is_named_where_both_ends_work() -> None:
    found = path_findings(addressed(), lambda test: len(set(test.path.leaves)) > 1, small=True)
    assert told(found) == [
        ("path-mtu-low", "error", ("leaf01", "leaf03")),
        ("path-mtu-low", "error", ("leaf02", "leaf04")),
    ]


def test_a_leaf_that_loses_everything_is_named_alone() -> None:
    found = path_findings(addressed(), lambda test: "leaf01" in test.path.leaves, small=True)
    assert told(found) == [("path-mtu-low", "error", ("leaf01",))]


def test_no_answer_at_all_is_another_finding() -> None:
    bad = End("gpu03", "eth0")
    found = path_findings(addressed(), lambda test: bad in (test.path.a, test.path.b))
    assert told(found) == [("path-silent", "error", ("gpu03 eth0",))]


def test_an_end_that_is_known_to_be_small_is_named() -> None:
    seen = dict(sound())
    port = seen["gpu03"].running.port("eth0")
    assert port is not None
    small = replace(port.settings, mtu=replace(port.settings.mtu, ip=1500))
    seen["gpu03"] = with_port(seen["gpu03"], "eth0", settings=small)
    bad = End("gpu03", "eth0")
    found = path_findings(
        addressed(seen), lambda test: bad in (test.path.a, test.path.b), small=True, mtu=1500
    )
    assert told(found) == [("path-mtu-low", "error", ("gpu03 eth0",))]
    assert found[0].found.endswith("told: MTU 1500")


def test_a_test_that_could_not_be_made_is_not_judged() -> None:
    at, gaps = addressed(), Gaps("paths")
    results = {test: Pong(large=False, trouble="the host has no ping") for test in chosen(at)}
    step = paths.judge(at, results, gaps)
    assert (step.judged, step.findings) == (0, ())
    assert [one.why for one in step.unjudged] == ["the host has no ping"]


# ---------------------------------------------------------------- load and baseline


def test_no_port_is_in_two_pairs_of_a_round() -> None:
    made = pairs.choose(addressed(), Gaps("perftest"))
    plan = load_step.rounds(made, 50)
    assert sorted(map(str, (path for pairs_ in plan for path in pairs_))) == sorted(map(str, made))
    for one in plan:
        ends = [end for path in one for end in (path.a, path.b)]
        assert len(ends) == len(set(ends))
    assert max(len(one) for one in load_step.rounds(made, 4)) == 2


def loaded(results: Any) -> Judgement:
    """All pairs; `results(path)` says what came of each."""
    at = addressed()
    made = pairs.choose(at, Gaps("perftest"))
    return load_step._judge_pairs(at, {path: results(path) for path in made}, Gaps("perftest"))


def test_a_pair_below_the_mark_is_named_at_the_end_that_is_slow_with_everybody() -> None:
    slow = End("gpu03", "eth0")
    step = loaded(lambda path: Loaded(200.0 if slow in (path.a, path.b) else 391.0))
    assert set(told(list(step.findings))) == {("bandwidth-low", "error", ("gpu03 eth0",))}
    assert step.findings[0].wanted == "360 Gb/s (90% of 400G)"
    assert step.metrics["gpu01 eth0 -> gpu02 eth0 ib_write_bw"].value == 391.0


def test_a_pair_that_failed_or_could_not_run() -> None:
    failed = loaded(lambda path: Loaded(failed="Failed status 12"))
    assert {one.found for one in failed.findings} == {"Failed status 12"}
    missing = loaded(lambda path: Loaded(trouble="the host has no ib_write_bw"))
    assert (missing.judged, missing.findings) == (0, ())


@pytest.mark.parametrize(
    ("done", "found"),
    [
        (Loaded(95.0), None),
        (Loaded(80.0), "80.0 GB/s"),
        (Loaded(failed="3 wrong results"), "3 wrong results"),
    ],
)
def test_nccl_is_judged_by_the_hosts_line_rate(done: Loaded, found: str | None) -> None:
    at = scene()  # two ports of 400G: 100 GB/s
    step = load_step._judge_nccl(at, "gpu01", ("gpu01", "gpu02"), NcclMark(), done)
    assert [one.found for one in step.findings] == ([found] if found else [])


def test_what_got_worse_than_the_baseline(tmp_path: Path) -> None:
    path = tmp_path / "verify" / "baseline.json"
    assert baseline.load(path) is None
    place = (Place("gpu01", "eth0"),)

    def step(pause: float, speed: float) -> Judgement:
        metrics = {
            "gpu01 eth0 pause-tx": Metric(pause, "/s", places=place),
            "bw": Metric(speed, "Gb/s", True),
        }
        return Judgement("counters", 1, metrics=metrics)

    assert baseline.save(path, [step(10.0, 390.0)], ["gpu01"], "2026-11-30 12:00:00Z") == 2
    base = baseline.load(path)
    assert base is not None
    assert base.saved == "2026-11-30 12:00:00Z"

    def names(pause: float, speed: float) -> list[str]:
        return [one.message for one in baseline.compare(scene(), [step(pause, speed)], base, 10.0)]

    assert names(11.0, 351.1) == []
    assert names(11.5, 351.1) == ["gpu01 eth0 pause-tx is worse than in the baseline"]
    assert names(0.0, 350.0) == ["bw is worse than in the baseline"]
    told_already = replace(step(99.0, 390.0), findings=tuple(findings(scene(("gpu01", count("crc"), 5)))))
    assert baseline.compare(scene(), [told_already], base, 10.0) == ()


@pytest.mark.parametrize(("value", "worse"), [(1.0, 0), (1.1, 1)])
def test_a_rate_that_was_not_kept_was_zero(value: float, worse: int) -> None:
    """It must grow by more than noise, and the node must have been read."""
    metric = Metric(value, "/s", places=(Place("gpu01", "eth0"),))
    step = Judgement("counters", 1, metrics={"gpu01 eth0 pause-tx": metric})
    read = baseline.Baseline("", {}, {}, frozenset({"gpu01"}))
    assert len(baseline.compare(scene(), [step], read, 10.0)) == worse
    assert baseline.compare(scene(), [step], baseline.Baseline("", {}), 10.0) == ()


def test_a_later_baseline_keeps_what_was_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"

    def save(nodes: list[str], **metrics: Metric) -> None:
        named = {name.replace("_", " "): one for name, one in metrics.items()}
        baseline.save(path, [Judgement("counters", 1, metrics=named)], nodes, "now")

    save(["gpu01", "gpu02"], gpu01_pause=Metric(1.0, "/s"), gpu02_pause=Metric(2.0, "/s"))
    save([], gpu01_bw=Metric(390.0, "Gb/s", True))
    save(["gpu01"])
    found = baseline.load(path)
    assert found is not None
    assert found.values == {"gpu02 pause": 2.0, "gpu01 bw": 390.0}
    assert found.nodes == {"gpu01", "gpu02"}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "saved": "", "metrics": 3}']
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is not a baseline"):
        baseline.load(path)


# ---------------------------------------------------------------- the verdict


def health(at: Scene, *others: Finding) -> Health:
    made = verify.judge(at, drifts(at), STEPS)
    return verify.verdict(at.judged, made, others, today=TODAY, nodes=14, interval_s=SECONDS)


def waived(rule: str, until: str = "2027-01-31") -> Resolved:
    resolved = fabric()
    row = {"rule": rule, "node": "gpu01", "until": until, "reason": "cable ordered"}
    intent = resolved.intent.model_copy(update={"waivers": (Waiver.model_validate(row),)})
    return replace(resolved, intent=intent)


@pytest.mark.parametrize("rule", ["frame-errors", "FAB102"])
def test_a_waiver_of_the_intent_accepts_a_finding(rule: str) -> None:
    at = scene(("gpu01", count("crc"), 5))
    (bad,) = findings(at)
    (one,) = waive([bad], waived(rule), TODAY)
    assert one.waived == "until 2027-01-31: cable ordered"
    (late,) = waive([bad], waived(rule, "2026-01-31"), TODAY)
    assert late.waived == ""


def test_check_knows_such_waivers() -> None:
    def names(resolved: Resolved) -> list[str]:
        return [one.name for one in apply_waivers([], resolved, TODAY)]

    assert names(waived("frame-errors")) == []
    assert names(waived("frame-errors", "2026-01-31")) == ["waiver-expired"]
    (odd,) = apply_waivers([], waived("frame-erors"), TODAY)
    assert odd.help == "did you mean frame-errors?"


def test_what_counts() -> None:
    warned = health(scene(("gpu01", count("pause-tx"), 5)))
    assert (verify.fails(warned, False), verify.fails(warned, True)) == (False, True)
    wrong = health(scene(("gpu01", count("crc"), 5)))
    assert verify.fails(wrong, False)
    lost = health(scene(), *verify.unread(scene().judged, {"gpu01": "timeout: x", "gpu02": "timeout: x"}))
    assert told(list(lost.findings)) == [("node-not-read", "error", ("gpu01", "gpu02"))]
    assert verify.fails(lost, False)


def test_the_text_names_what_was_found_and_what_was_not_judged() -> None:
    made = health(scene(("gpu01", count("crc"), 5), ("gpu02", count("marks"), 5)))
    short = verify_text(made, Output())
    assert "error[FAB102] frame-errors: gpu01 eth0: broken frames arrive" in short
    assert "FAB109" not in short
    assert short.splitlines()[-1] == "14 nodes verified: 1 error, 1 note"
    long = verify_text(made, Output(verbose=True))
    assert "note[FAB109] congestion: gpu02 eth0" in long
    assert "not judged: pause-rx: the device shows no such counter: gpu[01-08],leaf" in long


def test_the_json_holds_all_of_it() -> None:
    made = health(scene(("gpu01", count("pause-tx"), 5)))
    data = json.loads(verify_json(made, passed=True))
    assert [one["step"] for one in data["steps"]] == ["counters", "config", "speed", "sm", "mtu"]
    assert data["steps"][0]["metrics"]["gpu01 eth0 pause-tx"] == {"value": 0.5, "unit": "/s"}
    assert [one["code"] for one in data["findings"]] == ["FAB106"]


def test_the_verdict_of_other_formats_names_every_check(tmp_path: Path) -> None:
    from rdma_fabric.cli import common
    from rdma_fabric.views.verdict import Source

    made = health(scene(("gpu01", count("crc"), 5)))
    verdict = verdict_of(made, Source(tmp_path), "demo", strict=False)
    junit = common.report("junit", verdict)
    assert '<testsuites name="fabric verify"' in junit
    assert 'name="FAB111 link-slow"' in junit
    assert common.report("markdown", verdict).startswith("## fabric verify: demo\n")


def test_explain_tells_what_a_finding_means(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "frame-errors"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("FAB102 frame-errors (error, step counters of `fabric verify`)\n\n")
    assert main(["explain", "frame-erors"]) == 2
    assert "did you mean frame-errors?" in capsys.readouterr().err


def test_an_unknown_step_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(ROOT / "inventory" / "demo"), "--only", "counters,speeds"]) == 2
    assert "no step 'speeds'" in capsys.readouterr().err


def test_codes_and_names_are_unique_and_found() -> None:
    assert len({one.code for one in HEALTH}) == len({one.name for one in HEALTH}) == len(HEALTH)
    assert [one.code for one in HEALTH] == sorted(one.code for one in HEALTH)
    for one in HEALTH:
        assert health_check(one.code) is health_check(one.name) is one
    assert Severity.ERROR > Severity.WARNING


def test_an_interrupt_closes_what_is_open_and_lets_nothing_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Fake:
        def __enter__(self) -> Fake:
            return self

        def __exit__(self, *_: object) -> None:
            closed.append("left")

        def close(self) -> None:
            closed.append("closed")

    monkeypatch.setattr(load_step, "open_session", lambda *_: Fake())
    opened, at = load_step._Open(), Address("gpu01", "192.0.2.1")
    before = signal.getsignal(signal.SIGINT)
    with (
        pytest.raises(KeyboardInterrupt),
        load_step._interruptible(opened),
        opened.of(at, "linux", Secrets({})),
    ):
        signal.raise_signal(signal.SIGINT)
    assert closed == ["closed", "left"]
    with pytest.raises(TransportError), opened.of(at, "linux", Secrets({})):
        pytest.fail("it began")
    assert opened.sessions == []
    assert signal.getsignal(signal.SIGINT) is before
