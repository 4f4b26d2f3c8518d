"""The circle of a host with Intel 800 Series NICs: wish, bundle, real sandbox, read-back, and back."""

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
from tests.lab.hostlab import run, running, said
from tests.lab.test_circle_linux import FOREIGN, Lab

pytestmark = pytest.mark.lab

OFF = ClassState(pfc_tx=False, pfc_rx=False, watchdog=False)
OPTION = "irdma.roce_ena"
SYSTEM = SystemState(
    modules=(("rdma_cm", True), ("rdma_ucm", True)),
    environment=(("NCCL_IB_TC", "104"),),
)
VENDOR = replace(SYSTEM, module_options=((OPTION, "1"),))


def port(name: str, priority: int = 3, cnp: int = 6, share: int = 50) -> PortState:
    """The worked example of the irdma page, with any lossless priority."""
    points = tuple({26: priority, 48: cnp}.get(point, 0) for point in range(64))
    classes = {
        0: replace(OFF, share=Share("dwrr", 100 - share)),
        priority: ClassState(pfc_tx=True, pfc_rx=True, watchdog=True, share=Share("dwrr", share)),
        cnp: replace(OFF, share=Share("strict")),
    }
    settings = PortSettings(
        Mtu(ip=9000),
        QosState(
            trust="dscp",
            dscp_to_priority=points,
            classes=tuple(classes.get(p, OFF) for p in range(8)),
            watchdog=WatchdogTimers(200, 400, UNMANAGED, "drop"),
            dcbx="none",
            global_pause=False,
            cable_m=15,
        ),
        Marking(rdma_cm_tos=104, traffic_class=104, roce_v2=True, np=(priority,), rp=(priority,)),
    )
    return PortState(name, "physical", settings)


def lab_of(folder: Path, stack: str = "ofed", traits: tuple[str, ...] = (), count: int = 1) -> Iterator[Lab]:
    options = {"asked": f"module_options.{OPTION}", "mtu_manager": "netplan", "stack": stack}
    if "4tc" in traits:
        options["irdma_traffic_classes"] = "4"
    names = [f"eth{number}" for number in range(count)]
    ports = tuple(HostPort(name, nic="irdma", gbps=100, stack=stack, traits=traits) for name in names)
    with running(HostFacts("gpu01", ports, seed=FOREIGN), folder) as host:
        devices = [said(host, f"ls /sys/class/net/{name}/device/infiniband").strip() for name in names]
        hw = Hardware(
            ("linux", "nic_irdma"),
            ports=tuple(
                PortHardware(name, speed_gbps=100, nic="irdma", rdma=device)
                for name, device in zip(names, devices, strict=True)
            ),
            options=tuple(sorted(options.items())),
        )
        yield Lab(host, hw)


def commands(change: Change) -> list[str]:
    return [
        line for line in change.lines if line.startswith(("dcb ", "ethtool ", "mkdir ", "echo ", "devlink "))
    ]


def applied(lab: Lab, change: Change, name: str = "r1") -> None:
    found = lab.drive(change, "apply", name)
    assert (found["failed"], found["refused"]) == (None, ""), found
    assert lab.drive(change, "confirm", name)["failed"] is None


def ready(lab: Lab, *ports: PortState) -> NodeState:
    """Brought to the wish; Intel's own driver counts its option after a reboot."""
    wish = NodeState(VENDOR if lab.hw.option("stack") != "inbox" else SYSTEM, ports)
    wanted = lab.realize(wish)
    applied(lab, lab.change(wanted))
    if lab.hw.option("stack") != "inbox":
        lab.host.reboot()
    return wanted


def test_the_kernels_driver(tmp_path: Path) -> None:
    """It begins with RoCE, and its devlink chooses the protocol at once."""
    for lab in lab_of(tmp_path, "inbox"):
        wish = NodeState(SYSTEM, (port("eth0"),))
        wanted, blank, foreign = lab.realize(wish), lab.observe(), lab.foreign()
        change = lab.change(wanted)
        assert change.blocked == () and not change.empty
        applied(lab, change)
        seen = lab.observe()
        assert differences(wanted, seen.running) == ()
        assert differences(wanted, seen.stored) == ()
        assert lab.change(wanted).empty
        assert lab.drive(change, "apply", "r2")["changed"] is False

        bdf = said(lab.host, "basename $(readlink -f /sys/class/net/eth0/device)").strip()
        flip = "devlink dev param set pci/{0} name enable_{1} value {2} cmode runtime"
        # With our rule the RDMA device that comes anew is brought back to RoCE by its unit.
        lab.host.somebody("mv /etc/udev/rules.d/90-fabric-rdma.rules /root")
        for name, value in (("roce", "false"), ("iwarp", "true")):
            lab.host.somebody(flip.format(bdf, name, value))
        lab.host.somebody("mv /root/90-fabric-rdma.rules /etc/udev/rules.d")
        change = lab.change(wanted)
        assert commands(change)[:2] == [flip.format(bdf, "iwarp", "false"), flip.format(bdf, "roce", "true")]
        assert change.level is Disturbs.DRIVER_RELOAD
        applied(lab, change, "r3")
        assert differences(wanted, lab.observe().running) == ()

        back = lab.realize(forget_unknown(owned_part(blank.running, wanted)))
        rolled = lab.change(back)
        assert lab.drive(rolled, "apply", "r4")["failed"] is None
        assert differences(back, lab.observe().running) == ()
        assert lab.drive(rolled, "undo", "r4")["undone"]
        assert differences(wanted, lab.observe().running) == ()
        assert lab.foreign() == foreign


def test_the_whole_circle_with_intels_own_driver(tmp_path: Path) -> None:
    """In iWARP mode until its option counts; then all of it, also after another reboot."""
    for lab in lab_of(tmp_path, count=2):
        wish = NodeState(VENDOR, (port("eth0"), port("eth1", 4)))
        wanted = lab.realize(wish)
        assert lab.observe().running.ports[0].settings.marking.roce_v2 is False
        first = lab.change(wanted)
        assert "/etc/modprobe.d/zz-fabric.conf: options irdma roce_ena=1" in first.lines
        lab.drive(first, "apply")
        lab.drive(first, "confirm")
        assert "ports.eth0.marking.roce_v2" in waiting(wanted, lab.observe())
        lab.host.reboot()
        again = lab.change(wanted)
        if not again.empty:
            applied(lab, again, "r2")
        seen = lab.observe()
        assert differences(wanted, seen.running) == () and differences(wanted, seen.stored) == ()
        lab.host.reboot()
        seen = lab.observe()
        assert differences(wanted, seen.running) == () and lab.change(wanted).empty
        # A folder that stayed would keep the driver from being unloaded.
        assert run(lab.host, "ls /sys/kernel/config/irdma")[1] == ""

        # Without the option in the intent, it is told and not fought.
        plain = lab.realize(NodeState(SYSTEM, (port("eth0"), port("eth1", 4))))
        lab.host.somebody("rm /etc/modprobe.d/zz-fabric.conf")
        lab.host.reboot()
        change = lab.change(plain)
        assert any("roce_ena" in why for _, why in change.reasons)


def test_a_card_with_four_classes(tmp_path: Path) -> None:
    for lab in lab_of(tmp_path, "inbox", ("4tc",)):
        plain = port("eth0")
        by_tag = replace(
            plain, settings=replace(plain.settings, qos=replace(plain.settings.qos, trust="pcp"))
        )
        wanted = ready(lab, by_tag)
        seen = lab.observe()
        assert differences(wanted, seen.running) == () and lab.change(wanted).empty
        assert [one.queue for one in seen.running.ports[0].settings.qos.classes] == [0, 0, 0, 1, 0, 0, 2, 0]
        # An inventory that promises more than the card has.
        wrong = Lab(lab.host, replace(lab.hw, options=(("mtu_manager", "netplan"), ("stack", "inbox"))))
        change = wrong.change(wrong.realize(NodeState(SYSTEM, (port("eth0"),))))
        assert any("irdma_traffic_classes: 4" in why for _, why in change.reasons) and commands(change) == []


def test_by_tag_and_back(tmp_path: Path) -> None:
    for lab in lab_of(tmp_path, "inbox"):
        plain = port("eth0")
        by_tag = replace(
            plain, settings=replace(plain.settings, qos=replace(plain.settings.qos, trust="pcp"))
        )
        first = ready(lab, by_tag)
        assert differences(first, lab.observe().running) == ()
        wanted = ready(lab, plain)
        assert differences(wanted, lab.observe().running) == ()
        moved = lab.realize(NodeState(SYSTEM, (port("eth0", 4),)))
        change = lab.change(moved)
        assert commands(change)[:2] == [
            "dcb app del dev eth0 dscp-prio 26:3",
            "dcb app add dev eth0 dscp-prio 26:4",
        ]
        applied(lab, change, "r3")
        assert differences(moved, lab.observe().running) == ()
        back = lab.change(lab.realize(NodeState(SYSTEM, (by_tag,))))
        assert lab.drive(back, "apply", "r4")["failed"] is None
        assert differences(first, lab.observe().running) == ()
        assert lab.drive(back, "undo", "r4")["undone"]
        assert differences(moved, lab.observe().running) == ()


def test_what_somebody_changes_is_repaired_with_what_it_takes(tmp_path: Path) -> None:
    for lab in lab_of(tmp_path, "inbox"):
        wanted = ready(lab, port("eth0"))
        lab.host.somebody("dcb pfc set dev eth0 prio-pfc all:off; dcb app del dev eth0 dscp-prio 48:6 7:0")
        change = lab.change(wanted)
        assert commands(change) == [
            "dcb app add dev eth0 dscp-prio 7:0 48:6",
            "dcb pfc set dev eth0 prio-pfc all:off 3:on",
        ]
        assert change.level is Disturbs.PORT_BOUNCE
        assert lab.drive(change, "apply", "r2")["done"] == ["call /usr/local/sbin/fabric-qos eth0"]
        assert differences(wanted, lab.observe().running) == ()

        # What the driver says when it refuses comes along.
        refused = run(lab.host, "fabric-qos eth0 NIC=irdma TRUST=dscp DSCP2PRIO=9")
        assert refused[0] != 0


def test_the_agent_in_the_firmware_is_stopped_or_left_alone(tmp_path: Path) -> None:
    for lab in lab_of(tmp_path, "inbox"):
        plain = port("eth0")
        lab.host.somebody("ethtool --set-priv-flags eth0 fw-lldp-agent on")
        assert lab.observe().running.ports[0].settings.qos.dcbx == "firmware"
        unowned = replace(
            plain, settings=replace(plain.settings, qos=replace(plain.settings.qos, dcbx=UNMANAGED))
        )
        change = lab.change(lab.realize(NodeState(SYSTEM, (unowned,))))
        assert any("fw-lldp-agent off" in why for _, why in change.reasons) and commands(change) == []
        wanted = ready(lab, plain)
        seen = lab.observe()
        assert differences(wanted, seen.running) == ()
        lab.host.reboot()
        assert differences(wanted, lab.observe().running) == ()


def test_a_failing_step_takes_everything_back(tmp_path: Path) -> None:
    for lab in lab_of(tmp_path, "inbox"):
        blank = lab.observe()
        wanted = lab.realize(NodeState(replace(SYSTEM, modules=()), (port("eth0"),)))
        change = lab.change(wanted)
        broken = replace(change, commit=(*change.commit, Call(("false",), unless=("false",))))
        found = lab.drive(broken, "apply")
        assert found["failed"]["step"] == "false" and found["undone"] and not found["pending"]
        assert differences(forget_unknown(owned_part(blank.running, wanted)), lab.observe().running) == ()
