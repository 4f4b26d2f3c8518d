"""The helpers that platforms share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdma_fabric.hardware import Hardware, PortHardware
from rdma_fabric.platforms import _shared as shared
from rdma_fabric.state import (
    UNKNOWN,
    UNMANAGED,
    Amount,
    ClassState,
    Difference,
    Ecn,
    NodeState,
    PortSettings,
    PortState,
    QosState,
    Share,
    differences,
)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((5,), "5"), ((1, 0), "0-1"), ((0, 1, 2, 5), "0-2,5"), ((7, 7, 9), "7,9")],
)
def test_compact(numbers: tuple[int, ...], text: str) -> None:
    assert shared.compact(numbers) == text


@given(st.sets(st.integers(0, 63), min_size=1))
def test_expand_reads_what_compact_writes(numbers: set[int]) -> None:
    assert shared.expand(shared.compact(numbers)) == tuple(sorted(numbers))
    assert shared.expand(" ".join(map(str, numbers))) == tuple(sorted(numbers))


@pytest.mark.parametrize("text", ["", "a", "1,,2", "1-b"])
def test_expand_refuses(text: str) -> None:
    with pytest.raises(ValueError):
        shared.expand(text)


def test_used_priorities() -> None:
    classes = [ClassState()] * 8
    classes[2] = ClassState(pfc_rx=True)
    classes[3] = ClassState(ecn=Ecn(Amount(1), Amount(2)))
    classes[4] = ClassState(share=Share("strict"))
    classes[5] = ClassState(pfc_tx=False, ecn=None, share=None, watchdog=False)
    qos = QosState(dscp_to_priority=(0,) * 63 + (6,), classes=tuple(classes))
    assert shared.used_priorities(qos) == (0, 2, 3, 4, 6)
    assert shared.by_priority(qos.dscp_to_priority)[6] == (63,)  # type: ignore[arg-type]


def test_with_class_changes_one_priority() -> None:
    qos = shared.with_class(QosState(), 3, queue=3)
    assert [state.queue for state in qos.classes] == [UNMANAGED] * 3 + [3] + [UNMANAGED] * 4


def test_ports_and_paths() -> None:
    hw = Hardware(("x",), ports=(PortHardware("swp1"), PortHardware("swp1.100")))
    state = NodeState(ports=(PortState("swp1.100"), PortState("ghost")))
    assert [port.name for port, _ in shared.owned_ports(state, hw)] == ["swp1.100"]
    names = [port.name for port in hw.ports]
    assert shared.split_path("ports.swp1.100.qos.trust", names) == ("swp1.100", "qos.trust")
    assert shared.split_path("ports.swp1.mtu.ip", names) == ("swp1", "mtu.ip")
    assert shared.split_path("system.sysctl.x", names) == ("", "system.sysctl.x")
    new = PortSettings(qos=QosState(trust="dscp"))
    assert shared.with_ports(state, {"ghost": new}).port("ghost") == PortState("ghost", settings=new)


def test_unknown_observation_blocks_every_wish() -> None:
    hw = Hardware(("x",), ports=(PortHardware("p1"),))
    seen = shared.unknown_observation(hw, "no answer")
    wanted = NodeState(ports=(PortState("p1", settings=PortSettings(qos=QosState(trust="dscp"))),))
    repair, blocked = shared.split_unknown(differences(wanted, seen.running))
    assert repair == ()
    assert blocked == (Difference("ports.p1.qos.trust", "dscp", UNKNOWN),)


def test_digest_is_stable_and_sees_values() -> None:
    one = QosState(trust="dscp", classes=(ClassState(ecn=Ecn(Amount(1), Amount(2))),) * 8)
    assert shared.digest(one) == shared.digest(QosState(trust="dscp", classes=one.classes))
    assert shared.digest(one) != shared.digest(QosState(trust=UNKNOWN, classes=one.classes))
    assert shared.digest({"b": {2, 1}, "a": (None, True)}) == shared.digest({"a": [None, True], "b": {1, 2}})


def test_indented_configuration() -> None:
    text = (
        "!\ninterface Ethernet1\n   mtu 9214\n   !\n   tx-queue 3\n      no priority\ninterface Ethernet10\n"
    )
    lines = shared.indented(text)
    (port,) = shared.starting(lines, "interface", "Ethernet1")
    assert port.find("mtu") == shared.Line("mtu 9214")
    assert port.find("tx-queue", "3") == shared.Line("tx-queue 3", (shared.Line("no priority"),))
    assert port.find("tx-queue", "4") is None
    assert [line.text for line in shared.starting(lines, "interface")] == [
        "interface Ethernet1",
        "interface Ethernet10",
    ]
