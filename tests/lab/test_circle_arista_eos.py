"""The circle of Arista EOS: wish, change, simulated switch, read-back, and back to the start."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdma_fabric.hardware import Hardware, PortHardware, asic_of
from rdma_fabric.lab.discovery import device_class
from rdma_fabric.lab.simulators._contract import Device, DeviceFacts, PortFact
from rdma_fabric.platforms._contract import Change
from rdma_fabric.platforms.arista_eos import PLATFORM, TEMPLATE
from rdma_fabric.state import (
    MTU_MAX,
    UNMANAGED,
    Amount,
    ClassState,
    Ecn,
    Mtu,
    NodeState,
    PortSettings,
    PortState,
    QosState,
    Share,
    WatchdogTimers,
    differences,
    owned_part,
)
from rdma_fabric.templating import render_lines
from tests.support.drive import Drive, Refused

PORTS = ("Ethernet1/1", "Ethernet2/1", "Ethernet3/1")
FOREIGN = """\
hostname leaf01
username admin privilege 15 role network-admin secret sha512 $6$salt$hashhashhash
ip access-list FOREIGN
   10 permit ip any any
interface Ethernet1/1
   description to gpu01
   no switchport
interface Ethernet2/1
   no switchport
interface Ethernet3/1
   description not ours
   no switchport
   mtu 4000
router bgp 65001
   router-id 192.0.2.1
"""
MODELS = {"uc-tx-queue": "DCS-7060X6-64PE", "tx-queue": "DCS-7280CR3-32P4"}
RAMP = Ecn(Amount(150_000), Amount(1_500_000))


class Clock:
    """Seconds that the test moves by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """One simulated switch and the one that drives it; the third port belongs to somebody else."""

    device: Device
    clock: Clock
    hw: Hardware
    drive: Drive
    runs: int = 0

    def seen(self) -> NodeState:
        return self.drive.observe(self.hw).running

    def to(self, want: NodeState) -> Change:
        """One whole run; a run's name is used once."""
        self.runs += 1
        self.drive.run = f"r{self.runs}"
        return self.drive.to(want, self.hw)

    def foreign(self) -> list[str]:
        """The running configuration without the lines that are ours: nothing may move in it."""
        kept, block = [], ""
        for row in self.device.running().splitlines():
            if not row.startswith(" "):
                block = row
            mine = block in (f"interface {name}" for name in PORTS[:2]) or not row.startswith(" ")
            if not (mine and OURS.match(row)):
                kept.append(row)
        return kept


OURS = re.compile(
    r"\s*(!|(no )?(qos (map|trust)|priority-flow-control|random-detect|bandwidth percent|priority\b)"
    r"|mtu |(uc-)?tx-queue|(no )?(dcbx|flowcontrol))"
)


def bench(model: str = MODELS["uc-tx-queue"], version: str = "4.32.1F", run: str = "r1") -> Bench:
    clock = Clock()
    facts = DeviceFacts(
        name="leaf01",
        platform="arista_eos",
        model=model,
        version=version,
        ports=tuple(PortFact(name, speed_gbps=400, peer_node="gpu01", peer_port="eth0") for name in PORTS),
        seed=tuple(FOREIGN.splitlines()),
    )
    device = device_class("arista_eos")(facts, clock)
    hw = Hardware(
        ("arista_eos",),
        model=model,
        version=version,
        ports=tuple(PortHardware(name, speed_gbps=400) for name in PORTS[:2]),
        asic=asic_of(model),
    )
    return Bench(device, clock, hw, driver(device, run))


def driver(device: Device, run: str) -> Drive:
    return Drive(device, PLATFORM, run=run, login=("terminal width 511", "terminal length 0"))


def roce(lossless: tuple[int, ...] = (3,), **qos: Any) -> PortSettings:
    classes = tuple(
        ClassState(
            pfc_tx=p in lossless,
            pfc_rx=p in lossless,
            watchdog=p in lossless,
            ecn=RAMP if p in lossless else None,
            headroom=None,
            share=Share("strict") if p == 6 else Share("dwrr", 50) if p in (0, 3) else UNMANAGED,
        )
        for p in range(8)
    )
    values: dict[str, Any] = {
        "trust": "dscp",
        "dscp_to_priority": tuple({26: 3, 48: 6, 56: 7}.get(dscp, 0) for dscp in range(64)),
        "classes": classes,
        "watchdog": WatchdogTimers(200, 400, 100, "drop"),
        "dcbx": "none",
        "global_pause": False,
    }
    return PortSettings(mtu=Mtu(ip=MTU_MAX), qos=QosState(**(values | qos)))


def node(one: PortSettings, two: PortSettings | None = None) -> NodeState:
    return NodeState(ports=(PortState(PORTS[0], settings=one), PortState(PORTS[1], settings=two or one)))


# ---------------------------------------------------------------- the circle


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("version", ["4.28.3M", "4.32.1F"])
def test_circle(model: str, version: str) -> None:
    one = bench(model, version)
    before, foreign = one.seen(), one.foreign()
    want = PLATFORM.realize(node(roce(), replace(roce((3, 4)), mtu=Mtu(4200))), one.hw).state

    change = one.to(want)
    assert change.lines and not change.blocked and not change.unverified
    assert "+" in one.drive.kept["diff"]
    after = one.drive.observe(one.hw)
    assert differences(want, after.running) == ()
    assert after.operational
    assert after.stored is not None and differences(want, after.stored) == ()
    assert PLATFORM.change(after, want, one.hw).empty
    assert one.foreign() == foreign

    back = one.to(owned_part(before, want))
    assert back.lines
    assert differences(owned_part(before, want), one.seen()) == ()
    assert one.foreign() == foreign


def test_full_rendering_reaches_the_same_state_as_the_change() -> None:
    by_change, by_hand = bench(), bench()
    want = PLATFORM.realize(node(roce()), by_change.hw).state
    by_change.to(want)
    lines = render_lines(TEMPLATE, PLATFORM.context(want, by_hand.hw))
    output = by_hand.device.somebody(("configure", *(line.strip() for line in lines), "end"))
    assert "%" not in output
    assert by_hand.seen() == by_change.seen()


def test_a_reboot_keeps_what_was_saved() -> None:
    one = bench()
    want = PLATFORM.realize(node(roce()), one.hw).state
    one.to(want)
    one.drive.hang_up()
    one.device.reboot()
    assert differences(want, one.seen()) == ()


MESS = (
    "enable",
    "configure",
    "priority-flow-control all off",
    "priority-flow-control pause watchdog override action drop",
    "qos map traffic-class 3 to tx-queue 4",
    "qos profile THEIRS",
    "qos trust cos",
    "priority-flow-control on",
    "priority-flow-control priority 5 no-drop",
    "interface Ethernet1/1",
    "mtu 4000",
    "flowcontrol receive on",
    "dcbx mode ieee",
    "priority-flow-control priority 4 no-drop",
    "no priority-flow-control pause watchdog",
    "priority-flow-control pause watchdog port action notify-only",
    "priority-flow-control pause watchdog port timer timeout 1 polling-interval 0.1 recovery-time 1",
    "end",
)


def test_settings_that_stand_in_the_way_are_taken_away() -> None:
    one = bench()
    output = one.device.somebody(MESS)
    assert "%" not in output
    foreign = one.foreign()
    want = PLATFORM.realize(node(roce(watchdog=WatchdogTimers(200, 400, 100, "errdisable"))), one.hw).state
    change = one.to(want)
    assert set(change.unverified) == {
        "no priority-flow-control all off",
        "no priority-flow-control pause watchdog override action drop",
    }
    assert "   no priority-flow-control priority 4" in change.lines
    seen = one.drive.observe(one.hw)
    assert differences(want, seen.running) == ()
    assert not any(name.startswith("override") for name, _ in seen.facts)
    assert PLATFORM.change(seen, want, one.hw).empty
    assert one.foreign() == foreign


def test_a_foreign_service_profile_is_read_through_and_left_alone() -> None:
    one = bench()
    one.device.somebody((*MESS[:2], *MESS[5:9], "interface Ethernet1/1", "service-profile THEIRS", "end"))
    seen = one.drive.observe(one.hw)
    port = seen.running.port(PORTS[0])
    assert port is not None
    assert [state.pfc_tx for state in port.settings.qos.classes] == [False] * 5 + [True, False, False]
    assert any("THEIRS" in note for note in seen.notes)
    want = PLATFORM.realize(node(roce()), one.hw).state
    change = one.to(want)
    # What the profile sets stays in force beside the lines of the port: said before the push, not after it.
    blocked = [f"ports.Ethernet1/1.qos.{name}" for name in ("trust", "classes.5.pfc_tx", "classes.5.pfc_rx")]
    assert [item.path for item in change.blocked] == blocked
    assert not any("control priority 5" in line for line in change.lines)
    left = {item.path for item in differences(want, one.seen())}
    assert left == {*blocked, "ports.Ethernet1/1.qos.classes.5.watchdog"}
    assert "service-profile THEIRS" in one.device.running()


# ---------------------------------------------------------------- the transaction


def staged(one: Bench, want: NodeState) -> Change:
    change = PLATFORM.change(one.drive.observe(one.hw), want, one.hw)
    one.drive.steps(change.lock)
    one.drive.steps(change.stage)
    return change


def test_nothing_is_live_before_the_commit_and_undo_drops_the_candidate() -> None:
    one = bench()
    before = one.seen()
    want = PLATFORM.realize(node(roce()), one.hw).state
    change = staged(one, want)
    assert one.seen() == before
    one.drive.steps(change.undo)
    assert one.seen() == before
    one.drive.apply(change)  # nothing of ours is left in the way of staging anew
    assert differences(want, one.seen()) == ()


def test_undo_after_the_commit_and_twice() -> None:
    one = bench()
    before = one.seen()
    want = PLATFORM.realize(node(roce()), one.hw).state
    change = staged(one, want)
    one.drive.steps(change.commit)
    assert differences(want, one.seen()) == ()
    one.drive.steps(change.undo)
    assert one.seen() == before
    one.drive.steps(change.undo)
    one.drive.steps(PLATFORM.dialect.recover)
    assert one.seen() == before


def test_undo_after_a_line_was_refused_in_the_same_login() -> None:
    one = bench()
    before = one.seen()
    too_large = replace(roce(), mtu=Mtu(9999))
    hw = replace(one.hw, options=(("mtu_max", "9999"),))
    want = PLATFORM.realize(node(too_large), hw).state
    change = PLATFORM.change(one.drive.observe(hw), want, hw)
    one.drive.steps(change.lock)
    with pytest.raises(Refused, match="mtu 9999"):
        one.drive.steps(change.stage)
    one.drive.hang_up()
    one.drive.steps(change.undo)
    assert one.seen() == before


def test_the_device_reverts_when_nobody_confirms() -> None:
    one = bench()
    before = one.seen()
    change = staged(one, PLATFORM.realize(node(roce()), one.hw).state)
    one.drive.steps(change.commit)
    one.drive.hang_up()
    one.clock.now += one.drive.timer_s + 1
    one.device.tick()
    assert one.seen() == before
    one.drive.steps(change.undo)
    assert one.seen() == before


def test_confirmed_and_not_saved_is_seen_and_repaired() -> None:
    one = bench()
    want = PLATFORM.realize(node(roce()), one.hw).state
    change = staged(one, want)
    one.drive.steps(change.commit)
    one.drive.steps(change.confirm)
    again = PLATFORM.change(one.drive.observe(one.hw), want, one.hw)
    assert again.stage == () and again.differences and not again.empty
    one.drive.apply(again)
    assert PLATFORM.change(one.drive.observe(one.hw), want, one.hw).empty


@pytest.mark.parametrize("committed", [False, True])
def test_two_runs_exclude_each_other(committed: bool) -> None:
    one = bench()
    want = PLATFORM.realize(node(roce()), one.hw).state
    change = staged(one, want)
    if committed:
        one.drive.steps(change.commit)
    other = driver(one.device, "k3")
    with pytest.raises(Refused, match="fabric-r1"):
        other.steps(change.lock)


def test_two_runs_that_started_together_both_stop() -> None:
    one = bench()
    want = PLATFORM.realize(node(roce()), one.hw).state
    change = PLATFORM.change(one.drive.observe(one.hw), want, one.hw)
    other = driver(one.device, "k3")
    one.drive.steps(change.lock)
    other.steps(change.lock)
    # Look at what is there, then open the session: both runs get that far before either goes on.
    one.drive.steps(change.stage[:2])
    other.steps(change.stage[:2])
    with pytest.raises(Refused, match="fabric-k3"):
        one.drive.steps(change.stage[2:])


def test_a_dead_run_is_noted_and_recovered() -> None:
    one = bench()
    before = one.seen()
    change = staged(one, PLATFORM.realize(node(roce()), one.hw).state)
    one.drive.steps(change.commit)
    one.drive.hang_up()
    seen = one.drive.observe(one.hw)
    assert any("fabric-r1" in note for note in seen.notes)
    one.drive.steps(PLATFORM.dialect.recover)
    one.drive.steps(PLATFORM.dialect.recover)
    assert one.seen() == before
    assert not any("fabric-r1" in note for note in one.drive.observe(one.hw).notes)


def test_the_diff_before_the_commit_shows_a_change_of_somebody_else() -> None:
    one = bench()
    change = staged(one, PLATFORM.realize(node(roce()), one.hw).state)
    first = one.drive.kept["diff"]
    one.device.somebody(
        ("enable", "configure", "interface Ethernet3/1", "description moved by somebody", "end")
    )
    one.drive.steps(change.stage[-1:])
    assert one.drive.kept["diff"] != first
    assert "moved by somebody" in one.drive.kept["diff"]


# ---------------------------------------------------------------- any wish


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(UNMANAGED), values)


# What EOS can express exactly and what sources confirm: the rest is in the tables of the unit tests.
CLASSES = st.builds(
    lambda lossless, ecn, share: ClassState(
        pfc_tx=lossless, pfc_rx=lossless, watchdog=lossless, ecn=ecn, headroom=None, share=share
    ),
    st.booleans(),
    st.one_of(
        st.none(),
        st.builds(Ecn, *[st.builds(Amount, st.integers(1, 10**7))] * 2, st.integers(1, 100).map(float)),
    ),
    maybe(st.one_of(st.just(Share("strict")), st.builds(Share, st.just("dwrr"), st.integers(1, 20)))),
)
WISHES = st.builds(
    lambda mtu, trust, dscp, classes, detect, restore, action: PortSettings(
        mtu=Mtu(ip=mtu),
        qos=QosState(
            trust=trust,
            dscp_to_priority=dscp,
            classes=classes,
            watchdog=WatchdogTimers(detect * 10, restore * 10, UNMANAGED, action),
            dcbx="none",
            global_pause=False,
        ),
    ),
    st.integers(1280, 9214),
    st.sampled_from(["dscp", "pcp", "port"]),
    st.tuples(*[st.integers(0, 7)] * 64),
    st.tuples(*[CLASSES] * 7, st.just(ClassState(pfc_tx=False, pfc_rx=False, watchdog=False, ecn=None))),
    st.integers(1, 6000),
    st.integers(1, 6000),
    st.sampled_from(["drop", "errdisable", "notify"]),
)


@given(WISHES, WISHES)
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_any_wish_is_reached_from_any_other(first: PortSettings, second: PortSettings) -> None:
    one = bench()
    for wish in (first, second, first):
        want = PLATFORM.realize(node(wish), one.hw).state
        one.to(want)
        seen = one.drive.observe(one.hw)
        assert differences(want, seen.running) == ()
        assert PLATFORM.change(seen, want, one.hw).empty
