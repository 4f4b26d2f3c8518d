"""Ports of any other NIC: only RDMA-CM marking is ours."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _host_verbs as verbs
from rdma_fabric.platforms._contract import Call, Disturbs, Put
from rdma_fabric.platforms.nic_generic import PLATFORM
from rdma_fabric.state import (
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    Absent,
    ClassState,
    Marking,
    NicState,
    NodeState,
    PortSettings,
    PortState,
    QosState,
    differences,
)
from rdma_fabric.templating import render
from tests.unit.test_platform_nic_mlx5 import SETTINGS, WISH

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "nic_generic"
PORT = PortHardware("eth1", nic="generic", rdma="rxe0")
HW = Hardware(("linux", "nic_generic"), ports=(PORT,))
ONLY_CM = PortSettings(marking=Marking(rdma_cm_tos=104, roce_v2=True))


def node(found: PortSettings) -> NodeState:
    return NodeState(ports=(PortState("eth1", "physical", found),))


def answers(**parts: tuple[str, int]) -> dict[str, str]:
    text = "".join(f"@@{name} eth1\n{body}\n@={status}\n" for name, (body, status) in parts.items())
    return dict.fromkeys(PLATFORM.questions(HW), text)


BLANK = {
    "rdma": ("rxe0", 0),
    "tos": ("0", 0),
    "mode": ("RoCE v2", 0),
    "conf": ("cat: /etc/fabric/qos/eth1.conf: No such file or directory", 1),
    "wants": ("", 1),
}


def test_realize_keeps_only_rdma_cm() -> None:
    found = PLATFORM.realize(node(WISH), HW)
    one = found.state.ports[0].settings
    assert (one.marking.rdma_cm_tos, one.marking.roce_v2) == (104, True)
    left = [getattr(one.marking, item.name) for item in fields(Marking)][1:-1]
    assert {value for value in left if value is not True} == {NOT_APPLICABLE}
    assert one.qos.trust is NOT_APPLICABLE and one.qos.dscp_to_priority is NOT_APPLICABLE
    assert {c.pfc_tx for c in one.qos.classes} == {NOT_APPLICABLE}
    assert [(f.severity, f.setting) for f in found.faults] == [
        (Severity.WARNING, "qos.classes"),
        (Severity.NOTE, "marking.traffic_class"),
    ]


def test_without_an_rdma_device_only_the_mtu_remains() -> None:
    hw = replace(HW, ports=(replace(PORT, rdma=""),))
    found = PLATFORM.realize(node(ONLY_CM), hw)
    assert found.state.ports[0].settings.marking.rdma_cm_tos is NOT_APPLICABLE
    assert [(f.severity, f.setting) for f in found.faults] == [(Severity.NOTE, "marking.rdma_cm_tos")]
    assert PLATFORM.realize(node(PortSettings()), hw).faults == ()


@given(SETTINGS)
@settings(max_examples=60, deadline=None)
def test_realize_twice_is_realize_once(wish: PortSettings) -> None:
    once = PLATFORM.realize(node(wish), HW)
    twice = PLATFORM.realize(once.state, HW)
    assert twice.state == once.state and twice.faults == ()


def test_read_back() -> None:
    text = yaml.safe_load((OBSERVE / "answer.yaml").read_text("utf-8"))["answer"]
    found = PLATFORM.parse(dict.fromkeys(PLATFORM.questions(HW), text), HW)
    wanted = PLATFORM.realize(node(ONLY_CM), HW).state
    assert differences(wanted, found.running) == () and differences(wanted, found.stored) == ()
    assert dict(found.facts) == {"conf eth1": "RDMA CMA_TOS", "rdma eth1": "rxe0"}
    assert PLATFORM.change(found, wanted, HW).empty
    settings = found.running.ports[0].settings
    assert settings.qos.trust is NOT_APPLICABLE and settings.marking.np is NOT_APPLICABLE


@pytest.mark.parametrize("text", ["", "sh: not found", "@@tos eth1\n106"])
def test_what_is_not_understood_is_unknown(text: str) -> None:
    found = PLATFORM.parse(dict.fromkeys(PLATFORM.questions(HW), text), HW)
    marking = found.running.ports[0].settings.marking
    assert (marking.rdma_cm_tos, marking.roce_v2) == (UNKNOWN, UNKNOWN)
    assert found.notes
    assert PLATFORM.change(found, node(ONLY_CM), HW).empty


VERBS = "hca_id:\trxe0\n\tport:\t1\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t{}\n"


@pytest.mark.parametrize(
    ("shown", "status", "netdev", "mtu", "note"),
    [
        ("4096 (5)", 0, "9000", 4096, ""),
        ("2048 (4)", 0, "4096", 2048, ""),
        ("1024 (3)", 0, "1500", 1024, ""),
        ("2048 (4)", 0, "9000", 2048, "RDMA MTU 2048, although its netdev MTU 9000 has room for 4096"),
        ("4096 (5)", 0, "4176", 4096, ""),
        ("4096 (4)", 0, "9000", UNKNOWN, ""),
        ("invalid MTU (0)", 0, "9000", UNKNOWN, ""),
        ("4096 (5)", 255, "9000", UNKNOWN, ""),
        ("4096 (5)\n\t\t\tactive_mtu:\t\t2048 (4)", 0, "9000", UNKNOWN, ""),
        ("2048 (4)", 0, "", 2048, ""),
    ],
)
def test_the_rdma_mtu_as_its_device_tells_it(
    shown: str, status: int, netdev: str, mtu: Any, note: str
) -> None:
    parts = {**BLANK, "verbs": (VERBS.format(shown), status), "mtu": (netdev, 0)}
    found = PLATFORM.parse(answers(**parts), HW)
    assert found.running.ports[0].settings.nic.rdma_mtu == mtu
    assert [text for text in found.notes if "RDMA MTU" in text] == ([f"eth1: {note}"] if note else [])


def test_a_device_that_is_not_there_is_told() -> None:
    said = "IB device 'rxe0' wasn't found"
    found = PLATFORM.parse(answers(**{**BLANK, "verbs": (said, 255)}), HW)
    assert found.notes[0].startswith("eth1: there is no RDMA device rxe0; `rdma link add rxe0 type rxe")


@pytest.mark.parametrize(
    ("netdev", "kernel", "rxe"),
    [
        (1500, 1024, 1024),
        (2048, 1024, 1024),
        (4096, 2048, 2048),
        (4138, 2048, 2048),
        (4160, 2048, 2048),
        (4176, 2048, 4096),
        (4192, 4096, 4096),
        (9000, 4096, 4096),
        (351, 0, 256),
        (352, 256, 256),
        (68, 0, 0),
    ],
)
def test_what_netdev_mtu_gives_which_rdma_mtu(netdev: int, kernel: int, rxe: int) -> None:
    """Measured with Soft-RoCE on Linux 6.1 (reference soft_roce_qemu): 1500 to 9000, the third column."""
    assert verbs.rdma_mtu(netdev) == kernel
    assert verbs.rdma_mtu(netdev, verbs.RXE_OVERHEAD) == rxe


def test_the_bound_serves_hardware_and_soft_roce() -> None:
    for size, least in PLATFORM.traits.netdev_bound.items():
        assert verbs.rdma_mtu(least) == verbs.rdma_mtu(least, verbs.RXE_OVERHEAD) == size
        assert verbs.rdma_mtu(least - 1) < size
    assert PLATFORM.traits.netdev_bound[4096] == 4192


def test_non_volatile_settings_belong_to_known_cards() -> None:
    wish = PortSettings(nic=NicState(nv=(("ROCE_CC_PRIO_MASK", "255"), ("X", UNMANAGED))))
    found = PLATFORM.realize(node(wish), HW)
    assert [(f.severity, f.setting, f.wanted) for f in found.faults] == [
        (Severity.WARNING, "nic.nv", "ROCE_CC_PRIO_MASK")
    ]
    assert dict(found.state.ports[0].settings.nic.nv) == {"ROCE_CC_PRIO_MASK": NOT_APPLICABLE, "X": UNMANAGED}
    assert PLATFORM.realize(found.state, HW).faults == ()


def test_change() -> None:
    seen = PLATFORM.parse(answers(**BLANK), HW)
    found = PLATFORM.change(seen, node(ONLY_CM), HW)
    assert found.lines == (
        "/etc/fabric/qos/eth1.conf: CMA_TOS=106",
        "systemctl enable fabric-qos@eth1.service",
        "cma_roce_tos -d rxe0 -p 1 -t 106",
    )
    assert found.undo == (
        Call(("/usr/local/sbin/fabric-qos", "eth1", "RDMA=rxe0", "CMA_TOS=0"), timeout_s=120.0),
    )
    assert found.level == Disturbs.NOTHING
    wanted = node(ONLY_CM)
    context = PLATFORM.context(wanted, HW)
    rendered = {
        f"/{item.path}": render(item.template, item.context or context)
        for item in PLATFORM.artifacts(wanted, HW)
    }
    assert rendered == {step.path: step.text for step in found.commit if isinstance(step, Put)}


def test_mode_and_tos_are_told_apart() -> None:
    seen = PLATFORM.parse(answers(**{**BLANK, "mode": ("IB/RoCE v1", 0), "tos": ("104", 0)}), HW)
    found = PLATFORM.change(seen, node(ONLY_CM), HW)
    assert "cma_roce_mode -d rxe0 -p 1 -m 2" in found.lines
    assert not any("cma_roce_tos" in line for line in found.lines)


def test_nothing_to_write() -> None:
    assert PLATFORM.artifacts(node(PortSettings()), HW) == ()
    assert PLATFORM.questions(replace(HW, ports=())) == ()
    (question,) = PLATFORM.questions(HW)
    assert "\n" not in question and len(question) < 4000 and question.count("'") == 4


def test_absences_stay_absences() -> None:
    wish = PortSettings(qos=QosState(classes=(ClassState(),) * 8), marking=Marking())
    found: Any = PLATFORM.realize(node(wish), HW).state.ports[0].settings
    values = [
        getattr(found.qos, item.name) for item in fields(QosState) if item.name not in ("classes", "watchdog")
    ]
    assert {value for value in values if isinstance(value, Absent)} == {UNMANAGED}
