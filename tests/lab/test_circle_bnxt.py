"""The circle of a host with Broadcom NICs: wish, bundle, real sandbox, read-back, and back to the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.lab.hosts import HostFacts, HostPort
from rdma_fabric.platforms._contract import Call, Change, Disturbs
from rdma_fabric.state import (
    UNMANAGED,
    ClassState,
    Marking,
    Mtu,
    NicState,
    NodeState,
    PortSettings,
    PortState,
    QosState,
    Share,
    SystemState,
    WatchdogTimers,
    differences,
    forget_unknown,
    owned_part,
    waiting,
)
from tests.lab.hostlab import run, running
from tests.lab.test_circle_linux import FOREIGN, Lab

pytestmark = pytest.mark.lab

DSCP = tuple({26: 3, 48: 6, 56: 7}.get(point, 0) for point in range(64))
OFF = ClassState(pfc_tx=False, pfc_rx=False, watchdog=False)
SYSTEM = SystemState(
    modules=(("rdma_cm", True), ("rdma_ucm", True)),
    environment=(("NCCL_IB_HCA", "=bnxt_re0,bnxt_re1"), ("NCCL_IB_TC", "104")),
)


def port(name: str, priority: int = 3, share: int = 60) -> PortState:
    """The worked example of the bnxt page, with any lossless priority."""
    classes = {
        0: replace(OFF, share=Share("dwrr", 100 - share)),
        priority: ClassState(pfc_tx=True, pfc_rx=True, watchdog=True, share=Share("dwrr", share)),
        6: replace(OFF, share=Share("strict")),
    }
    settings = PortSettings(
        Mtu(ip=9000),
        QosState(
            trust="dscp",
            dscp_to_priority=tuple(priority if p == 3 else p for p in DSCP),
            classes=tuple(classes.get(p, OFF) for p in range(8)),
            watchdog=WatchdogTimers(200, 400, UNMANAGED, "drop"),
            dcbx="none",
            global_pause=False,
            cable_m=15,
        ),
        Marking(
            rdma_cm_tos=104,
            traffic_class=104,
            roce_v2=True,
            cnp_dscp=48,
            cnp_priority=6,
            np=(priority,),
            rp=(priority,),
            parameters=(("np_min_time_between_cnps", "8"), ("rp_g", "10")),
        ),
    )
    return PortState(name, "physical", settings)


WISH = NodeState(SYSTEM, (port("eth0"),))
VENDOR = "bnxt_setupcc.sh -d bnxt_re0 -i eth0 -m 3 -s 26 -p 48 -r 3 -c 7 -b 50 -u 4"
"""Broadcom's own script with its usual values: CNPs on priority 7."""


def lab_of(
    folder: Path,
    stack: str = "ofed",
    traits: tuple[str, ...] = (),
    niccli: str = "233.2.77.9",
    count: int = 1,
) -> Iterator[Lab]:
    options = {"stack": stack, "mtu_manager": "netplan"}
    if "no-service-profile" in traits:
        options["bnxt_service_profile"] = "0"
    if "mp17" in traits:
        options["bnxt_traffic_classes"] = "8"
    if stack == "inbox":
        options["bnxt_cc"] = "debugfs"
    names = [f"eth{number}" for number in range(count)]
    ports = tuple(HostPort(name, nic="bnxt", gbps=200, stack=stack, traits=traits) for name in names)
    hw = Hardware(
        ("linux", "nic_bnxt"),
        ports=tuple(
            PortHardware(name, speed_gbps=200, nic="bnxt", rdma=f"bnxt_re{i}") for i, name in enumerate(names)
        ),
        options=tuple(sorted(options.items())),
    )
    with running(HostFacts("gpu01", ports, seed=FOREIGN, niccli=niccli), folder) as host:
        yield Lab(host, hw)


CARDS: list[tuple[str, tuple[str, ...]]] = [
    ("ofed", ()),
    ("ofed", ("mp17",)),
    ("ofed", ("no-service-profile",)),
    ("inbox", ()),
]


@pytest.fixture(params=CARDS, ids=["three classes", "eight classes", "old firmware", "kernel driver"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    stack, traits = request.param
    yield from lab_of(tmp_path, stack, traits)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Lab]:
    yield from lab_of(tmp_path)


def test_the_whole_circle(lab: Lab) -> None:
    wanted = lab.realize(WISH)
    blank, foreign = lab.observe(), lab.foreign()
    first = lab.change(wanted)
    assert first.blocked == () and not first.empty
    applied = lab.drive(first, "apply")
    assert (applied["failed"], applied["refused"], applied["changed"]) == (None, "", True), applied
    seen = lab.observe()
    assert differences(wanted, seen.running) == ()
    assert differences(wanted, seen.stored) == ()
    assert lab.change(wanted).empty
    assert lab.drive(first, "apply")["changed"] is False
    assert lab.drive(first, "confirm")["failed"] is None
    # A folder that stayed would keep the driver from being unloaded.
    assert run(lab.host, "ls /sys/kernel/config/bnxt_re 2>/dev/null")[1] == ""

    back = lab.realize(forget_unknown(owned_part(blank.running, wanted)))
    rolled = lab.change(back)
    assert lab.drive(rolled, "apply", "r3")["failed"] is None
    assert differences(back, lab.observe().running) == ()
    assert lab.drive(rolled, "undo", "r3")["undone"]
    assert differences(wanted, lab.observe().running) == ()
    assert lab.foreign() == foreign


def test_all_of_it_outlives_a_reboot(tmp_path: Path) -> None:
    wish = NodeState(SYSTEM, (port("eth0"), port("eth1", 4)))
    for lab in lab_of(tmp_path, count=2):
        lab.to(wish)
        lab.host.reboot()
        wanted, again = lab.realize(wish), lab.observe()
        assert differences(wanted, again.running) == () and differences(wanted, again.stored) == ()
        assert lab.change(wanted).empty


@pytest.mark.parametrize("release", ["229.0.1", "233.2.77.9", "236.1.155.0"])
def test_with_niccli_alone(release: str, tmp_path: Path) -> None:
    """The sandbox's own dcb is taken away; the machine's says that the port has no DCB."""
    # Without dcb nobody tells who owns DCBX.
    settings = port("eth0").settings
    qos = replace(settings.qos, dcbx=UNMANAGED)
    wish = NodeState(ports=(PortState("eth0", settings=replace(settings, qos=qos, mtu=Mtu())),))
    for lab in lab_of(tmp_path, niccli=release):
        lab.host.somebody("rm -f $(command -v dcb)")
        blank, wanted = lab.observe(), lab.realize(wish)
        change = lab.to(wish)
        assert any("niccli" in line for line in change.lines)
        seen = lab.observe()
        assert differences(wanted, seen.running) == () and lab.change(wanted).empty
        back = lab.realize(forget_unknown(owned_part(blank.running, wanted)))
        lab.drive(lab.change(back), "apply", "r2")
        assert differences(back, lab.observe().running) == ()


def commands(change: Change) -> list[str]:
    return [
        line for line in change.lines if line.startswith(("dcb ", "ethtool ", "mkdir ", "echo ", "rmdir "))
    ]


def test_what_the_vendors_script_left(one: Lab) -> None:
    """CNPs on priority 7: its entries go before the map of priorities changes."""
    assert run(one.host, VENDOR)[0] == 0
    change = one.to(WISH)
    assert commands(change)[:3] == [
        "dcb pfc set dev eth0 prio-pfc all:off",
        "dcb app del dev eth0 dscp-prio 26:3 48:7",
        "dcb app del dev eth0 dgram-port-prio 4791:3",
    ]
    wanted = one.realize(WISH)
    assert differences(wanted, one.observe().running) == ()

    # What somebody changes is repaired with what it takes.
    one.host.somebody("dcb pfc set dev eth0 prio-pfc all:off; dcb app del dev eth0 dscp-prio 48:6")
    change = one.change(wanted)
    assert commands(change)[:2] == [
        "dcb pfc set dev eth0 prio-pfc all:off 3:on",
        "dcb app add dev eth0 dscp-prio 48:6",
    ]
    assert change.level == Disturbs.PORT_BOUNCE
    assert one.drive(change, "apply", "r2")["done"] == ["call /usr/local/sbin/fabric-qos eth0"]
    assert differences(wanted, one.observe().running) == ()

    # What was written and not applied is not in the hardware.
    files = "/sys/kernel/config/bnxt_re/bnxt_re0"
    one.host.somebody(f"mkdir {files}; echo -n 0x0 > {files}/ports/1/cc/ecn_enable; rmdir {files}")
    assert one.change(wanted).empty


def test_a_moved_priority(one: Lab) -> None:
    one.to(WISH)
    moved = NodeState(SYSTEM, (port("eth0", 4),))
    change = one.to(moved, "r2")
    assert "dcb pfc set dev eth0 prio-pfc all:off 4:on" in change.lines
    seen = one.observe()
    assert differences(one.realize(moved), seen.running) == ()
    marking = seen.running.ports[0].settings.marking
    assert (marking.np, marking.rp) == ((4,), (4,))


def test_a_failing_step_takes_everything_back(one: Lab) -> None:
    blank = one.observe()
    change = one.change(one.realize(WISH))
    broken = replace(change, commit=(*change.commit, Call(("false",), unless=("false",))))
    found = one.drive(broken, "apply")
    assert found["failed"]["step"] == "false" and found["undone"] and not found["pending"]
    wanted = one.realize(replace(WISH, system=replace(SYSTEM, modules=())))
    assert differences(forget_unknown(owned_part(blank.running, wanted)), one.observe().running) == ()


@pytest.mark.parametrize(
    ("trait", "reason"),
    [("fw-lldp", "firmware runs the LLDP agent"), ("no-service-profile", "bnxt_service_profile: 0")],
)
def test_a_port_that_cannot_be_written_is_left_alone(trait: str, reason: str, tmp_path: Path) -> None:
    for lab in lab_of(tmp_path, traits=(trait,)):
        hw = replace(lab.hw, options=(("mtu_manager", "netplan"), ("stack", "ofed")))
        planned = Lab(lab.host, hw)
        change = planned.change(planned.realize(WISH))
        assert any(reason in why for _, why in change.reasons) and commands(change) == []


NAMES = ("SUPPORT_RDMA",)


def memory(seen: NodeState | None) -> dict[str, object]:
    state = seen.port("eth0") if seen is not None else None
    return {name: value for name, value in state.settings.nic.nv if name in NAMES} if state else {}


@pytest.mark.parametrize("niccli", ["233.2.77.9", "236.1.155.0"])
def test_memory_first_then_in_force(niccli: str, tmp_path: Path) -> None:
    """Options that niccli writes count after the reboot; the undo writes the old ones."""
    for lab in lab_of(tmp_path, niccli=niccli):
        asked = Lab(lab.host, replace(lab.hw, options=(*lab.hw.options, ("nv", " ".join(NAMES)))))
        before = asked.observe()
        assert memory(before.running) == memory(before.stored) and before.pending is None
        old = {name: str(value) for name, value in memory(before.running).items()}
        new = {name: "0" if value == "1" else "1" for name, value in old.items()}
        wish = NodeState(
            ports=(PortState("eth0", settings=PortSettings(nic=NicState(nv=tuple(sorted(new.items()))))),)
        )
        wanted = asked.realize(wish)
        change = asked.change(wanted)
        assert change.blocked == () and len(change.differences) == 1
        done = asked.drive(change, "apply")
        assert (done["failed"], done["refused"], done["changed"]) == (None, "", True), done
        seen = asked.observe()
        assert (memory(seen.running), memory(seen.stored)) == (old, new)
        assert waiting(wanted, seen) == {f"ports.eth0.nic.nv.{name}" for name in NAMES}
        assert asked.change(wanted).empty
        assert asked.drive(change, "undo")["undone"]
        assert memory(asked.observe().stored) == old

        for line in change.lines:
            if line.startswith("niccli "):
                assert run(asked.host, line)[0] == 0
        assert memory(asked.observe().stored) == new
        asked.host.reboot()
        after = asked.observe()
        assert memory(after.running) == memory(after.stored) == new, after.notes
        assert waiting(wanted, after) == frozenset() and asked.change(wanted).empty
