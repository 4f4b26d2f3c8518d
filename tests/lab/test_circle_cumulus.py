"""The circle of Cumulus Linux: wish, change, simulated switch, read-back, and back to the start."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdma_fabric.hardware import Hardware, PortHardware, asic_of
from rdma_fabric.lab.discovery import device_class
from rdma_fabric.lab.simulators._contract import Device, DeviceFacts, PortFact, Reply, Session
from rdma_fabric.platforms._contract import Change, Send
from rdma_fabric.platforms.cumulus import PLATFORM, TEMPLATE
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

PORTS = ("swp1", "swp2", "swp3", "swp4")
OURS = PORTS[:3]
FOREIGN = (
    "nv set system location 'row 4, rack 7'",
    "nv set system aaa user ops hashed-password '$6$abc$def/ghi.'",
    "nv set system aaa user ops role system-admin",
    "nv set interface swp1 description 'gpu01 rail 0'",
    "nv set acl MGMT type ipv4",
    "nv set acl MGMT rule 10 match ip source-ip 10.0.0.0/8",
    "nv set acl MGMT rule 10 action permit",
    "nv set interface swp4 link mtu 4000",
    "nv set qos mapping customer trust l3",
    "nv set interface swp4 qos mapping profile customer",
    "nv set vrf default router bgp autonomous-system 65101",
)
RAMP = Ecn(Amount(150_000), Amount(1_500_000))
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]\r?")


class Clock:
    """Seconds that the test moves by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Plain(Session):
    """A login without the terminal's escapes, which netmiko and the lean driver take away too."""

    def __init__(self, inner: Session) -> None:
        self.inner = inner

    def prompt(self) -> str:
        return _ESCAPES.sub("", self.inner.prompt())

    def run(self, line: str) -> Reply:
        reply = self.inner.run(line)
        return replace(reply, text=_ESCAPES.sub("", reply.text))

    def closed(self) -> None:
        self.inner.closed()


class Shell(Drive):
    """One user in the switch's shell."""

    @property
    def session(self) -> Session:
        if self._session is None:
            self._session = Plain(self.device.open(self.user))
        return self._session


class Bench:
    """A switch with foreign configuration, its clock, and a run on it."""

    def __init__(
        self, version: str = "5.14", seed: tuple[str, ...] = FOREIGN, ports: tuple[str, ...] = PORTS
    ) -> None:
        self.clock = Clock()
        ports_of = tuple(PortFact(name, 400, peer_node="spine01", peer_port=name) for name in ports)
        facts = DeviceFacts("leaf01", "cumulus", "SN5600", version, ports_of, seed)
        self.device: Device = device_class("cumulus")(facts, self.clock)
        self.drive = Shell(self.device, PLATFORM)
        self.hw = hardware(version)

    def other(self, run: str = "r2", user: str = "fabric") -> Shell:
        """A second run."""
        return Shell(self.device, PLATFORM, run=run, user=user)

    def change(self, wish: NodeState) -> Change:
        """The change to the realized wish from what is there."""
        return PLATFORM.change(self.drive.observe(self.hw), PLATFORM.realize(wish, self.hw).state, self.hw)

    def commands(self) -> list[str]:
        """The configuration as commands."""
        return self.device.execute("cumulus", "nv config show -o commands").stdout.splitlines()

    def locks(self) -> list[str]:
        """Our files on the switch."""
        return sorted(name for name in self.device.files if "fabric" in name)


def hardware(version: str = "5.14", ports: tuple[str, ...] = OURS) -> Hardware:
    return Hardware(
        ("cumulus",), "SN5600", version, tuple(PortHardware(name) for name in ports), asic_of("SN5600")
    )


def roce(lossless: tuple[int, ...] = (3,), **qos: Any) -> PortSettings:
    classes = tuple(
        ClassState(
            pfc_tx=p in lossless,
            pfc_rx=p in lossless,
            watchdog=p in lossless,
            ecn=RAMP if p in lossless else UNMANAGED,
            headroom=None if p in lossless else UNMANAGED,
            share=Share("strict") if p == 6 else Share("dwrr", 50) if p in (0, 3) else UNMANAGED,
        )
        for p in range(8)
    )
    values: dict[str, Any] = {
        "trust": "dscp",
        "dscp_to_priority": tuple({26: 3, 48: 6, 56: 7}.get(dscp, 0) for dscp in range(64)),
        "classes": classes,
        "watchdog": WatchdogTimers(200, UNMANAGED, UNMANAGED, "drop"),
        "dcbx": "none",
        "global_pause": False,
        "cable_m": 15,
    }
    return PortSettings(mtu=Mtu(ip=MTU_MAX), qos=QosState(**(values | qos)))


def node(*settings: PortSettings) -> NodeState:
    """The settings on the first ports, the last one's on the rest."""
    return NodeState(
        ports=tuple(
            PortState(name, settings=settings[min(number, len(settings) - 1)])
            for number, name in enumerate(OURS)
        )
    )


def with_class(one: PortSettings, priority: int, **values: Any) -> PortSettings:
    classes = list(one.qos.classes)
    classes[priority] = replace(classes[priority], **values)
    return replace(one, qos=replace(one.qos, classes=tuple(classes)))


FAST = with_class(roce(), 3, ecn=Ecn(Amount(800_000), Amount(3_200_000), 20.0))
NO_PFC = with_class(roce(()), 3, ecn=RAMP)
WISHES = {
    "one class": node(roce()),
    "two classes": node(with_class(roce((3, 4)), 4, share=Share("strict"))),
    "ports differ": node(roce(), FAST, NO_PFC),
    "no pfc": node(NO_PFC),
    "receive only, both trusted": node(
        with_class(roce(trust="both", pcp_to_priority=(0, 0, 0, 3, 0, 0, 6, 7)), 3, pfc_tx=False)
    ),
    "mtu only": node(PortSettings(mtu=Mtu(4200))),
    "untrusted, advertised": node(PortSettings(qos=QosState(trust="port", dcbx="ieee"))),
    "no marking": node(PortSettings(qos=QosState(classes=(ClassState(ecn=None),) * 8))),
}
BEFORE: dict[str, tuple[str, ...]] = {
    "foreign": FOREIGN,
    "macro": (*FOREIGN, "nv set qos roce mode lossless"),
    "lossy macro": (*FOREIGN, "nv set qos roce mode lossy"),
    "default-global by hand": (
        *FOREIGN,
        "nv set qos traffic-pool default-lossless memory-percent 40",
        "nv set qos traffic-pool default-lossy memory-percent 60",
        "nv set qos pfc default-global switch-priority 5",
        "nv set qos mapping default-global trust l3",
        "nv set qos congestion-control default-global traffic-class 5 min-threshold 40000",
        "nv set qos egress-queue-mapping default-global switch-priority 2 traffic-class 7",
    ),
    "profiles of others": (
        *FOREIGN,
        "nv set qos traffic-pool default-lossless memory-percent 40",
        "nv set qos traffic-pool default-lossy memory-percent 60",
        "nv set qos pfc mine switch-priority 5",
        "nv set interface swp1,swp4 qos pfc profile mine",
        "nv set interface swp1,swp4 qos pfc-watchdog",
        "nv set qos congestion-control red traffic-class 1,2 min-threshold 40000",
        "nv set qos congestion-control red traffic-class 1,2 max-threshold 200000",
        "nv set interface swp1-2,swp4 qos congestion-control profile red",
        "nv set qos link-pause pp rx enable",
        "nv set interface swp3 qos link-pause profile pp",
    ),
}


_OWN = re.compile(
    rf"interface ({'|'.join(OURS)}) (qos|link mtu|lldp) |qos \S+ fabric-\d+ "
    "|qos (pfc-watchdog|traffic-pool default-|egress-queue-mapping)"
)


def foreign_lines(bench: Bench) -> list[str]:
    """Lines that are not ours; interface lines one port at a time, as NVUE groups ports by what they have."""
    found = []
    for line in bench.commands():
        match = re.match(r"nv set interface (\S+) (.*)", line)
        names = ports_of(match[1]) if match else [""]
        for name in names:
            one = line if match is None else f"nv set interface {name} {match[2]}"
            if not _OWN.search(one):
                found.append(one)
    return sorted(found)


def ports_of(names: str) -> list[str]:
    found = []
    for part in names.split(","):
        match = re.fullmatch(r"swp(\d+)-(\d+)", part)
        found += [f"swp{n}" for n in range(int(match[1]), int(match[2]) + 1)] if match else [part]
    return found


def circle(bench: Bench, wish: NodeState) -> None:
    """There and back: every read-back is as said, the second change is empty, the rest never moves."""
    drive, hw = bench.drive, bench.hw
    before = drive.observe(hw)
    foreign = foreign_lines(bench)
    want = PLATFORM.realize(wish, hw).state
    change = PLATFORM.change(before, want, hw)
    assert not change.blocked
    drive.apply(change)
    after = drive.observe(hw)
    assert differences(want, after.running) == ()
    assert after.operational
    assert after.stored is not None and differences(want, after.stored) == ()
    assert PLATFORM.change(after, want, hw).empty
    assert foreign_lines(bench) == foreign
    assert bench.locks() == []
    recorded = owned_part(before.running, want)
    back = PLATFORM.change(after, recorded, hw)
    drive.apply(back)
    again = drive.observe(hw)
    assert differences(recorded, again.running) == ()
    assert PLATFORM.change(again, recorded, hw).empty
    assert foreign_lines(bench) == foreign
    assert bool(back.lines) is bool(change.lines)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("wish", WISHES)
def test_circle(wish: str, before: str) -> None:
    circle(Bench(seed=BEFORE[before]), WISHES[wish])


def test_pause_needs_the_lossless_pool_too() -> None:
    bench = Bench()
    start = bench.device.running()
    paused = node(replace(NO_PFC, qos=replace(NO_PFC.qos, global_pause=True)))
    circle(bench, paused)
    assert bench.device.running() == start
    bench.drive.apply(bench.change(paused))
    assert "nv set qos traffic-pool default-lossless memory-percent 50" in bench.commands()
    bench.drive.apply(bench.change(WISHES["one class"]))
    assert bench.change(WISHES["one class"]).empty


@pytest.mark.parametrize("version", ["5.6", "5.8", "5.9.2", "5.15", "5.17"])
def test_circle_of_releases(version: str) -> None:
    words = ("mode lossless", "state enabled") if version in ("5.15", "5.17") else ("mode lossless",)
    foreign = tuple(line for line in FOREIGN if "acl" not in line)
    circle(Bench(version, foreign), WISHES["one class"])
    circle(Bench(version, foreign), WISHES["untrusted, advertised"])
    circle(Bench(version, (*foreign, *(f"nv set qos roce {word}" for word in words))), WISHES["one class"])


@pytest.mark.parametrize("wish", ["one class", "two classes", "ports differ", "no pfc", "no marking"])
def test_way_back_ends_where_it_began(wish: str) -> None:
    """Nothing of ours is left on a switch that had nothing of ours."""
    bench = Bench()
    start = bench.device.running()
    before = bench.drive.observe(bench.hw)
    bench.drive.apply(bench.change(WISHES[wish]))
    assert bench.device.running() != start
    want = PLATFORM.realize(WISHES[wish], bench.hw).state
    recorded = owned_part(before.running, want)
    bench.drive.apply(PLATFORM.change(bench.drive.observe(bench.hw), recorded, bench.hw))
    assert bench.device.running() == start


@pytest.mark.parametrize("wish", WISHES)
def test_full_rendering_reaches_what_a_change_reaches(wish: str) -> None:
    typed, changed = Bench(seed=()), Bench(seed=())
    want = PLATFORM.realize(WISHES[wish], typed.hw).state
    session = typed.device.open("cumulus")
    for line in (*render_lines(TEMPLATE, PLATFORM.context(want, typed.hw)), "nv config apply -y"):
        assert "Error" not in session.run(line).text
    changed.drive.apply(changed.change(WISHES[wish]))
    for bench in (typed, changed):
        assert differences(want, bench.drive.observe(bench.hw).running) == ()
    assert typed.change(WISHES[wish]).empty


def test_one_wish_after_the_other() -> None:
    bench = Bench()
    foreign = foreign_lines(bench)
    for wish in (*WISHES.values(), *reversed(WISHES.values())):
        bench.drive.apply(bench.change(wish))
        want = PLATFORM.realize(wish, bench.hw).state
        assert differences(want, bench.drive.observe(bench.hw).running) == ()
    assert foreign_lines(bench) == foreign


# ---------------------------------------------------------------- any wish, one after the other


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(UNMANAGED), values)


RAMPS = st.builds(
    lambda low, room, chance: Ecn(Amount(low), Amount(low + room), chance),
    st.integers(0, 10**7),
    st.integers(1, 10**7),
    st.integers(1, 100).map(float),
)
SHARES = st.one_of(st.just(Share("strict")), st.builds(Share, st.just("dwrr"), st.integers(0, 60)))


def classes(lossless: frozenset[int], rx_only: bool) -> st.SearchStrategy[tuple[ClassState, ...]]:
    def one(priority: int) -> st.SearchStrategy[ClassState]:
        on = priority in lossless
        return st.builds(
            ClassState,
            pfc_tx=st.just(on and not rx_only),
            pfc_rx=st.just(on),
            watchdog=maybe(st.just(on)),
            ecn=maybe(st.one_of(st.none(), RAMPS)),
            share=maybe(st.one_of(st.none(), SHARES)),
        )

    return st.tuples(*(one(priority) for priority in range(8)))


PFC = st.tuples(st.frozensets(st.integers(0, 7), max_size=2), st.booleans())
QOS = PFC.flatmap(
    lambda pfc: st.builds(
        QosState,
        trust=maybe(st.sampled_from(["dscp", "pcp", "both", "port"])),
        dscp_to_priority=maybe(
            st.dictionaries(st.integers(0, 63), st.integers(0, 7), max_size=5).map(spread)
        ),
        pcp_to_priority=maybe(st.tuples(*[st.integers(0, 7)] * 8)),
        classes=classes(*pfc),
        dcbx=maybe(st.sampled_from(["none", "ieee"])),
        global_pause=st.just(False),
        cable_m=maybe(st.integers(1, 300)),
    )
)


def spread(points: dict[int, int]) -> tuple[int, ...]:
    return tuple(points.get(dscp, 0) for dscp in range(64))


SETTINGS = st.builds(
    PortSettings, mtu=st.builds(Mtu, ip=maybe(st.sampled_from([MTU_MAX, 1500, 4200]))), qos=QOS
)
TIMERS = st.builds(
    WatchdogTimers, detect_ms=maybe(st.integers(100, 2000)), poll_ms=maybe(st.integers(100, 500))
)


def timed(first: PortSettings, second: PortSettings, timers: WatchdogTimers) -> NodeState:
    return node(*(replace(one, qos=replace(one.qos, watchdog=timers)) for one in (first, second)))


NODES = st.builds(timed, SETTINGS, SETTINGS, TIMERS)


@given(st.lists(NODES, min_size=2, max_size=2), st.sampled_from(sorted(BEFORE)))
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_any_wishes_one_after_the_other(wishes: list[NodeState], before: str) -> None:
    bench = Bench(seed=BEFORE[before])
    foreign = foreign_lines(bench)
    start = bench.drive.observe(bench.hw)
    recorded = []
    for wish in wishes:
        want = PLATFORM.realize(wish, bench.hw).state
        recorded.append(owned_part(bench.drive.observe(bench.hw).running, want))
        bench.drive.apply(bench.change(wish))
        seen = bench.drive.observe(bench.hw)
        assert differences(want, seen.running) == ()
        assert PLATFORM.change(seen, want, bench.hw).empty
    for want in reversed(recorded):
        bench.drive.apply(PLATFORM.change(bench.drive.observe(bench.hw), want, bench.hw))
        assert differences(want, bench.drive.observe(bench.hw).running) == ()
    assert foreign_lines(bench) == foreign
    assert start.neighbours == bench.drive.observe(bench.hw).neighbours


# ---------------------------------------------------------------- the transaction


def test_diff_is_kept_and_nothing_is_live_before_the_commit() -> None:
    bench = Bench()
    start = bench.device.running()
    change = bench.change(WISHES["one class"])
    bench.drive.steps((*change.lock, *change.stage))
    assert bench.device.running() == start
    assert "fabric-1" in bench.drive.kept["diff"]
    assert "hashed-password" not in bench.drive.kept["diff"]
    bench.drive.steps((*change.undo, *change.unlock))
    assert bench.device.running() == start
    assert bench.device.execute("fabric", "nv config diff").stdout == ""
    assert bench.locks() == []


def test_timer_brings_the_start_back_and_the_late_confirmation_is_refused() -> None:
    bench = Bench()
    start = bench.device.running()
    change = bench.change(WISHES["one class"])
    bench.drive.steps((*change.lock, *change.stage, *change.commit))
    assert bench.device.running() != start
    bench.clock.now += 299
    bench.device.tick()
    assert bench.device.running() != start
    bench.clock.now += 2
    bench.device.tick()
    assert bench.device.running() == start
    with pytest.raises(Refused):
        bench.drive.steps(change.confirm)
    bench.drive.steps((*change.undo, *change.unlock))
    assert bench.device.running() == start


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("upto", ["", "lock", "stage", "commit"])
def test_undo_is_safe_at_any_point(upto: str, twice: bool) -> None:
    bench = Bench()
    start = bench.device.running()
    change = bench.change(WISHES["one class"])
    for phase in ("lock", "stage", "commit"):
        if upto:
            bench.drive.steps(getattr(change, phase))
        if phase == upto or not upto:
            break
    for _ in range(2 if twice else 1):
        bench.drive.steps((*change.undo, *change.unlock))
    assert bench.device.running() == start
    assert bench.locks() == []
    assert bench.device.execute("fabric", "nv config diff").status == 0
    bench.drive.apply(bench.change(WISHES["one class"]))


@pytest.mark.parametrize("upto", ["lock", "stage", "commit"])
def test_a_run_that_died_is_recovered(upto: str) -> None:
    bench = Bench()
    start = bench.device.running()
    change = bench.change(WISHES["one class"])
    for phase in ("lock", "stage", "commit"):
        bench.drive.steps(getattr(change, phase))
        if phase == upto:
            break
    bench.drive.hang_up()
    later = bench.other("r2")
    with pytest.raises(Refused, match=r"fabric-r1\.lock"):
        later.steps(change.lock)
    again = bench.other("r1")
    again.steps(PLATFORM.dialect.recover)
    again.steps(PLATFORM.dialect.recover)
    assert bench.device.running() == start
    assert bench.locks() == []
    later.apply(bench.change(WISHES["one class"]))


def test_recovery_after_the_confirmation_changes_nothing() -> None:
    bench = Bench()
    change = bench.change(WISHES["one class"])
    bench.drive.steps((*change.lock, *change.stage, *change.commit, *change.confirm))
    there = bench.device.running()
    bench.other("r1").steps(PLATFORM.dialect.recover)
    assert bench.device.running() == there
    assert bench.locks() == []


@pytest.mark.parametrize("user", ["fabric", "somebody"])
def test_two_runs_exclude_each_other(user: str) -> None:
    bench = Bench()
    change = bench.change(WISHES["one class"])
    bench.drive.steps((*change.lock, *change.stage))
    second = bench.other("r2", user)
    with pytest.raises(Refused) as refused:
        second.steps(change.lock)
    assert "fabric-r1.lock" in refused.value.output
    second.steps((*change.undo, *change.unlock))
    assert bench.locks() == ["/tmp/fabric-r1.lock"]
    bench.drive.steps((*change.commit, *change.confirm, *change.save, *change.unlock))
    second.steps(change.lock)


def test_of_two_runs_that_lock_at_once_at_most_one_goes_on() -> None:
    bench = Bench()
    change = bench.change(WISHES["one class"])
    look, staged, mark, again = change.lock
    first, second = bench.other("r3"), bench.other("r4")
    for run in (first, second):
        run.steps((look, staged))
    for run in (first, second):
        run.steps((mark,))
    with pytest.raises(Refused, match=r"fabric-r4\.lock"):
        first.steps((again,))
    second.steps((again,))
    assert bench.locks() == ["/tmp/fabric-r4.lock"]


def test_a_candidate_of_the_account_is_left_alone() -> None:
    bench = Bench()
    person = bench.device.open("fabric")
    person.run("nv set interface swp4 description 'half done'")
    change = bench.change(WISHES["one class"])
    with pytest.raises(Refused, match="this account has a candidate"):
        bench.drive.steps(change.lock)
    bench.drive.steps((*change.undo, *change.unlock))
    assert bench.locks() == []
    assert "half done" in bench.device.execute("fabric", "nv config diff").stdout


def test_somebody_elses_apply_is_neither_confirmed_nor_refused() -> None:
    bench = Bench()
    change = bench.change(WISHES["one class"])
    other = bench.device.open("ops")
    other.run("nv set interface swp4 description 'mine'")
    other.run("nv config apply --confirm 500s -y")
    there = bench.device.running()
    assert any("waits for its confirmation" in note for note in bench.drive.observe(bench.hw).notes)
    with pytest.raises(Refused):
        bench.drive.steps((*change.lock, *change.stage, *change.commit))
    bench.drive.steps((*change.undo, *change.unlock))
    with pytest.raises(Refused):
        bench.drive.steps(change.confirm)
    assert bench.device.running() == there
    assert "applied" in other.run("nv config apply --confirm-yes").text


def test_what_the_switch_refuses_stops_the_run() -> None:
    bench = Bench()
    hw = hardware(ports=("swp99",))
    wish = NodeState(ports=(PortState("swp99", settings=PortSettings(mtu=Mtu(9000))),))
    seen = bench.drive.observe(hw)
    assert PLATFORM.change(seen, wish, hw).empty
    line = Send(("nv set interface swp1 link mtu 9999",))
    with pytest.raises(Refused, match="Error"):
        bench.drive.steps((line,))
    change = bench.change(WISHES["mtu only"])
    broken = Send(("nv set interface swp99 link mtu 9000",))
    with pytest.raises(Refused, match="swp99 does not exist"):
        bench.drive.steps((*change.lock, *change.stage[:2], broken, *change.commit))


def test_without_auto_save_the_run_saves() -> None:
    seed = (*FOREIGN, "nv set system config auto-save enable off")
    bench = Bench(seed=seed)
    wish = WISHES["one class"]
    want = PLATFORM.realize(wish, bench.hw).state
    change = bench.change(wish)
    bench.drive.steps((*change.lock, *change.stage, *change.commit, *change.confirm))
    seen = bench.drive.observe(bench.hw)
    assert seen.stored is not None and differences(want, seen.stored) != ()
    later = PLATFORM.change(seen, want, bench.hw)
    assert later.lines == ("nv config save",)
    bench.drive.steps(change.save)
    bench.device.reboot()
    assert differences(want, bench.drive.observe(bench.hw).running) == ()
    assert bench.change(wish).empty


def test_drift_inside_a_profile_is_mended_by_its_line() -> None:
    bench = Bench()
    bench.drive.apply(bench.change(WISHES["one class"]))
    drift = ("nv set qos pfc fabric-1 switch-priority 5", "nv set interface swp2 link mtu 1500")
    bench.device.somebody((*drift, "nv config apply -y"))
    change = bench.change(WISHES["one class"])
    assert change.lines == (
        "nv unset qos pfc fabric-1 switch-priority 5",
        "nv set interface swp2 link mtu 9216",
    )
    bench.drive.apply(change)
    assert bench.change(WISHES["one class"]).empty


def test_break_out_ports() -> None:
    names = ("swp1s0", "swp1s1", "swp1s2", "swp1s3")
    bench, hw = Bench(ports=names, seed=()), hardware(ports=names)
    wish = NodeState(ports=tuple(PortState(name, settings=roce()) for name in names))
    want = PLATFORM.realize(wish, hw).state
    change = PLATFORM.change(bench.drive.observe(hw), want, hw)
    assert "nv set interface swp1s0-3 qos pfc profile fabric-1" in change.lines
    bench.drive.apply(change)
    assert differences(want, bench.drive.observe(hw).running) == ()
