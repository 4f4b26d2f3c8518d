"""The circle of SONiC: wish, change, simulated switch, read-back, and back to the start."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdma_fabric.hardware import Hardware, PortHardware, asic_of
from rdma_fabric.lab.discovery import device_class
from rdma_fabric.lab.simulators._contract import Device, DeviceFacts, PortFact
from rdma_fabric.platforms._contract import Change, Disturbs, Step
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
    PortSettings,
    PortState,
    QosState,
    Share,
    WatchdogTimers,
    differences,
    owned_part,
)
from rdma_fabric.templating import render
from tests.support.drive import Drive, Refused

PORTS = ("Ethernet0", "Ethernet8", "Ethernet16")
"""The last one belongs to somebody else."""
SWITCHES = [
    ("202305", "ACS-SN5600"),
    ("202405", "Arista-7060X6-64PE-64x400G"),
    ("202411", "ACS-SN5600"),
    ("202505", "Arista-7060X6-64PE-64x400G"),
    ("202511", "DellEMC-Z9664f-O64"),
    ("master", "ACS-SN5600"),
]
RAMP = Ecn(Amount(150_000), Amount(1_500_000))
# What the switch computes itself from cable, speed and PFC, and writes back (swss 3418).
COMPUTED = ("BUFFER_PG", "BUFFER_PROFILE")


class Clock:
    """Seconds that the test moves by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """One simulated switch and the one that drives it."""

    device: Device
    clock: Clock
    hw: Hardware
    drive: Drive

    def seen(self) -> NodeState:
        return self.drive.observe(self.hw).running

    def rows(self) -> dict[str, Any]:
        rows: dict[str, Any] = json.loads(self.device.execute("admin", "sonic-cfggen -d --print-data").stdout)
        return rows

    def own(self) -> dict[str, Any]:
        """CONFIG_DB without what the switch computes."""
        return {table: rows for table, rows in self.rows().items() if table not in COMPUTED}

    def foreign(self) -> dict[str, Any]:
        """Rows that nothing of ours may move: other tables, SONiC's own names, the third port."""
        tables = ("PORT", "PORT_QOS_MAP", "QUEUE", "PFC_WD", "CABLE_LENGTH")
        return {
            table: {
                key: row
                for key, row in rows.items()
                if table not in tables or key.partition("|")[0] == PORTS[2] or not key.startswith("Ethernet")
            }
            if table != "CABLE_LENGTH"
            else {key: row.get(PORTS[2]) for key, row in rows.items()}
            for table, rows in self.without_ours().items()
        }

    def without_ours(self) -> dict[str, Any]:
        """CONFIG_DB without computed tables, our names and the one poll interval; empty tables left out."""
        kept = {
            table: {k: v for k, v in rows.items() if not k.startswith("FABRIC") and k != "GLOBAL"}
            for table, rows in self.own().items()
        }
        return {table: rows for table, rows in kept.items() if rows and table != "PFC_WD"}

    def staged(self, want: NodeState) -> Change:
        change = PLATFORM.change(self.drive.observe(self.hw), want, self.hw)
        self.drive.steps(change.lock)
        self.drive.steps(change.stage)
        return change


def bench(version: str = "202411", model: str = "ACS-SN5600") -> Bench:
    clock = Clock()
    facts = DeviceFacts(
        name="leaf01",
        platform="sonic",
        model=model,
        version=version,
        ports=tuple(
            PortFact(
                name,
                speed_gbps=400,
                lanes=",".join(str(8 * number + lane) for lane in range(8)),
                alias=f"etp{number + 1}",
                index=number + 1,
                peer_node="gpu01",
                peer_port="eth0",
            )
            for number, name in enumerate(PORTS)
        ),
    )
    device = device_class("sonic")(facts, clock)
    hw = Hardware(
        ("sonic",),
        model=model,
        version=version,
        ports=tuple(PortHardware(name, speed_gbps=400) for name in PORTS[:2]),
        asic=asic_of(model),
    )
    return Bench(device, clock, hw, driver(device))


def driver(device: Device, run: str = "r1") -> Drive:
    return Drive(device, PLATFORM, run=run, user="admin")


def roce(lossless: tuple[int, ...] = (3,), **qos: Any) -> PortSettings:
    classes = tuple(
        ClassState(
            pfc_tx=p in lossless,
            pfc_rx=p in lossless,
            watchdog=p in lossless,
            ecn=RAMP if p in lossless else None,
            headroom=None if p in lossless else UNMANAGED,
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
        "cable_m": 15,
    }
    return PortSettings(mtu=Mtu(ip=MTU_MAX), qos=QosState(**(values | qos)))


def node(one: PortSettings, two: PortSettings | None = None) -> NodeState:
    return NodeState(ports=(PortState(PORTS[0], settings=one), PortState(PORTS[1], settings=two or one)))


def realized(one: Bench, *wishes: PortSettings) -> NodeState:
    return PLATFORM.realize(node(*wishes), one.hw).state


# ---------------------------------------------------------------- the circle


@pytest.mark.parametrize(("version", "model"), SWITCHES)
def test_circle(version: str, model: str) -> None:
    one = bench(version, model)
    before, start, foreign = one.seen(), one.own(), one.foreign()
    want = realized(one, roce(), replace(roce((3, 4)), mtu=Mtu(4200)))

    change = one.drive.to(want, one.hw)
    assert change.lines and not change.blocked and not change.unverified
    assert "DRY RUN EXECUTION" in one.drive.kept["diff"]
    after = one.drive.observe(one.hw)
    assert differences(want, after.running) == ()
    assert after.stored is not None and differences(want, after.stored) == ()
    assert after.notes == ()
    assert PLATFORM.change(after, want, one.hw).empty
    assert one.foreign() == foreign

    one.drive.to(owned_part(before, want), one.hw)
    assert differences(owned_part(before, want), one.seen()) == ()
    left = one.own()
    # The poll interval is the switch's: nobody may remove it through the updater.
    assert left.pop("PFC_WD") == {"GLOBAL": {"POLL_INTERVAL": "100"}}
    assert left == start


@pytest.mark.parametrize(("version", "model"), SWITCHES)
def test_full_rendering_reaches_the_same_state_as_the_change(version: str, model: str) -> None:
    by_change, by_hand = bench(version, model), bench(version, model)
    want = realized(by_change, roce((3, 4)))
    by_change.drive.to(want, by_change.hw)
    by_hand.device.files["/tmp/day0.json"] = render(TEMPLATE, PLATFORM.context(want, by_hand.hw)).encode()
    by_hand.device.somebody(("sudo config load -y /tmp/day0.json",))
    # Queue 4 of these ports is marked by SONiC's own profile, which a merge cannot take away.
    assert differences(want, by_hand.seen()) == ()
    assert differences(want, by_change.seen()) == ()


def test_a_reboot_keeps_what_was_saved() -> None:
    one = bench()
    want = realized(one, roce())
    one.drive.to(want, one.hw)
    one.drive.hang_up()
    one.device.reboot()
    assert differences(want, one.seen()) == ()


def test_ecn_is_tuned_without_touching_a_port() -> None:
    one = bench("202511")
    one.drive.to(realized(one, roce()), one.hw)
    tuned = replace(RAMP, kmin=Amount(200_000))
    wish = roce()
    classes = tuple(
        replace(state, ecn=tuned) if p == 3 else state for p, state in enumerate(wish.qos.classes)
    )
    want = realized(one, replace(wish, qos=replace(wish.qos, classes=classes)))
    change = one.drive.to(want, one.hw)
    assert len(change.lines) == 1 and change.level is Disturbs.NOTHING
    assert differences(want, one.seen()) == ()


def test_a_changed_pfc_set_is_repaired_and_nothing_else() -> None:
    one = bench()
    want = realized(one, roce())
    one.drive.to(want, one.hw)
    healthy = one.own()
    one.device.somebody(("sudo config interface pfc priority Ethernet8 3 off",))
    change = one.drive.to(want, one.hw)
    assert {line.split()[0] for line in change.lines} == {"PORT_QOS_MAP|Ethernet8"}
    assert one.own() == healthy


# ---------------------------------------------------------------- the transaction


def test_nothing_is_live_before_the_commit_and_undo_drops_what_was_staged() -> None:
    one = bench()
    start = one.rows()
    want = realized(one, roce())
    change = one.staged(want)
    assert one.rows() == start
    one.drive.steps(change.undo)
    assert one.rows() == start
    one.drive.steps(change.unlock)
    one.drive.apply(change)  # nothing of ours is left in the way of staging anew
    assert differences(want, one.seen()) == ()


@pytest.mark.parametrize(("version", "model"), SWITCHES)
def test_undo_after_the_commit_and_twice(version: str, model: str) -> None:
    one = bench(version, model)
    start = one.own()
    want = realized(one, roce())
    change = one.staged(want)
    one.drive.steps(change.commit)
    assert differences(want, one.seen()) == ()
    one.drive.steps(change.undo)
    assert one.own() == start
    one.drive.steps(change.undo)
    one.drive.steps(PLATFORM.dialect.recover)
    assert one.own() == start
    assert not [path for path in one.device.files if "/run/lock/fabric" in path]


@pytest.mark.parametrize(("version", "model"), SWITCHES)
def test_undo_at_every_step_of_the_commit(version: str, model: str) -> None:
    one = bench(version, model)
    start = one.own()
    want = realized(one, roce())
    steps = len(PLATFORM.change(one.drive.observe(one.hw), want, one.hw).commit)
    for done in range(steps + 1):
        change = one.staged(want)
        one.drive.steps(change.commit[:done])
        one.drive.steps(change.undo)
        assert one.own() == start, f"undo after {done} of {steps} steps"
        one.drive.steps(change.unlock)


@pytest.mark.parametrize(("version", "model"), SWITCHES)
def test_recover_at_every_step_of_the_commit(version: str, model: str) -> None:
    one = bench(version, model)
    start = one.own()
    want = realized(one, roce())
    steps = len(PLATFORM.change(one.drive.observe(one.hw), want, one.hw).commit)
    for done in range(steps + 1):
        change = one.staged(want)
        one.drive.steps(change.commit[:done])
        one.drive.hang_up()
        one.drive.steps(PLATFORM.dialect.recover)
        assert one.own() == start, f"recovered after {done} of {steps} steps"
        assert one.drive.observe(one.hw).notes == ()


@pytest.mark.parametrize(("version", "model"), SWITCHES)
def test_the_switch_goes_back_when_nobody_confirms(version: str, model: str) -> None:
    one = bench(version, model)
    start = one.own()
    change = one.staged(realized(one, roce()))
    one.drive.steps(change.commit)
    one.drive.hang_up()
    one.clock.now += one.drive.timer_s + 1
    one.device.tick()
    assert one.own() == start
    with pytest.raises(Refused, match="not loaded"):
        one.drive.steps(change.confirm)
    one.drive.steps(change.undo)
    one.drive.steps(PLATFORM.dialect.recover)
    assert one.own() == start


def test_a_confirmed_change_survives_timer_and_recovery() -> None:
    one = bench("202305")
    want = realized(one, roce())
    change = one.staged(want)
    for steps in (change.commit, change.confirm):
        one.drive.steps(steps)
    one.drive.hang_up()
    one.clock.now += one.drive.timer_s + 1
    one.device.tick()
    one.drive.steps(PLATFORM.dialect.recover)
    assert differences(want, one.seen()) == ()
    again = PLATFORM.change(one.drive.observe(one.hw), want, one.hw)
    assert again.differences and again.stage == () and not again.empty
    one.drive.apply(again)
    assert PLATFORM.change(one.drive.observe(one.hw), want, one.hw).empty


def test_undo_leaves_alone_what_others_changed_meanwhile() -> None:
    one = bench()
    start = one.own()
    change = one.staged(realized(one, roce()))
    one.drive.steps(change.commit)
    one.device.somebody(("sudo config interface mtu Ethernet16 4000",))
    one.drive.steps(change.undo)
    start["PORT"]["Ethernet16"]["mtu"] = "4000"
    assert one.own() == start


def test_a_patch_that_does_not_fit_any_more_is_refused_and_undone() -> None:
    one = bench()
    change = one.staged(realized(one, roce()))
    one.device.somebody(("sonic-db-cli CONFIG_DB DEL 'QUEUE|Ethernet0|3'",))
    start = one.own()
    with pytest.raises(Refused):
        one.drive.steps(change.commit)
    one.drive.steps(change.undo)
    assert one.own() == start


def test_two_runs_exclude_each_other() -> None:
    one = bench()
    change = one.staged(realized(one, roce()))
    other = driver(one.device, "k3")
    with pytest.raises(Refused, match="fabric run r1"):
        other.steps(change.lock)
    other.steps(PLATFORM.dialect.recover)  # of its own run: the lock of r1 stays
    with pytest.raises(Refused, match="fabric run r1"):
        other.steps(change.lock)
    one.drive.steps(change.undo)
    one.drive.steps(change.unlock)
    other.steps(change.lock)


def test_a_dead_run_is_noted() -> None:
    one = bench()
    change = one.staged(realized(one, roce()))
    one.drive.steps(change.commit)
    one.drive.hang_up()
    assert one.drive.observe(one.hw).notes == ("checkpoint fabric-r1: a change that was not confirmed",)


def test_nothing_names_a_shell_that_the_switch_has_not() -> None:
    """Every line of every way was accepted; refusals are those that the steps allow."""
    one = bench()
    change = one.staged(realized(one, roce()))
    ways: Iterable[tuple[Step, ...]] = (change.commit, change.undo, PLATFORM.dialect.recover)
    for steps in ways:
        one.drive.steps(steps)
    for line in one.drive.typed:
        assert "command not found" not in one.device.execute("admin", line).stderr, line


# ---------------------------------------------------------------- any wish


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(UNMANAGED), values)


CLASSES = st.builds(
    lambda lossless, low, ecn, share: ClassState(
        pfc_tx=lossless,
        pfc_rx=lossless,
        watchdog=lossless,
        ecn=Ecn(Amount(low), Amount(low + 1000), 50.0) if ecn else None,
        headroom=None,
        share=share,
    ),
    st.booleans(),
    st.sampled_from([1000, 150_000]),
    st.booleans(),
    maybe(
        st.one_of(
            st.none(), st.just(Share("strict")), st.builds(Share, st.just("dwrr"), st.sampled_from([1, 50]))
        )
    ),
)
WISHES = st.builds(
    lambda mtu, trust, dscp, classes, detect, action, cable: PortSettings(
        mtu=Mtu(ip=mtu),
        qos=QosState(
            trust=trust,
            dscp_to_priority=tuple((code // dscp) % 8 for code in range(64)),
            classes=classes,
            watchdog=WatchdogTimers(detect, 2 * detect, 100, action),
            dcbx="none",
            global_pause=False,
            cable_m=cable,
        ),
    ),
    maybe(st.sampled_from([1500, 9216])),
    st.sampled_from(["dscp", "pcp", "port"]),
    st.sampled_from([1, 8]),
    st.tuples(*[CLASSES] * 8),
    st.sampled_from([200, 400]),
    st.sampled_from(["drop", "forward", "alert"]),
    maybe(st.sampled_from([5, 40, 300])),
)


@pytest.mark.slow
@given(st.sampled_from(SWITCHES), WISHES, WISHES, WISHES)
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
def test_any_wish_then_another_and_back(
    switch: tuple[str, str], first: PortSettings, second: PortSettings, third: PortSettings
) -> None:
    one = bench(*switch)
    before, foreign = one.seen(), one.foreign()
    for wish in (realized(one, first, second), realized(one, second, third)):
        one.drive.to(wish, one.hw)
        assert differences(wish, one.seen()) == ()
        assert PLATFORM.change(one.drive.observe(one.hw), wish, one.hw).empty
        assert one.foreign() == foreign
    back = owned_part(before, wish)
    one.drive.to(back, one.hw)
    assert differences(back, one.seen()) == ()
    assert one.foreign() == foreign
