"""Settings as people read them: every field has a title, and a text that tells its values apart."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given

from rdma_fabric import settings
from rdma_fabric.settings import deviations, dscp_map, group_of, split_path, text
from rdma_fabric.state import (
    NOT_APPLICABLE,
    UNKNOWN,
    UNMANAGED,
    Amount,
    ClassState,
    Difference,
    Ecn,
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
)
from tests.support.states import full_states, steady


def _paths(cls: Any, path: str = "") -> Iterator[str]:
    """Paths of all fields below a port's settings, by the types alone."""
    hints = typing.get_type_hints(cls)
    for item in fields(cls):
        below = f"{path}.{item.name}" if path else item.name
        if is_dataclass(hints[item.name]):
            yield from _paths(hints[item.name], below)
        elif item.name == "classes":
            for priority in range(8):
                yield from _paths(ClassState, f"{below}.{priority}")
        else:
            yield f"{below}.np_x" if item.name in ("parameters", "nv") else below


@pytest.mark.parametrize("path", sorted(_paths(PortSettings)))
def test_every_field_has_a_title_and_a_text(path: str) -> None:
    group = group_of(path)
    assert group.title
    assert path not in group.title
    assert group.show(PortSettings()) in ("unmanaged", "unknown (could not be read)")
    assert group_of(group.key).key == group.key


def test_titles_are_distinct() -> None:
    groups = {group_of(path) for path in _paths(PortSettings)}
    assert len({group.title for group in groups}) == len({group.key for group in groups})


@steady
@given(full_states, full_states)
def test_deviations_tell_every_difference_once(wanted: NodeState, seen: NodeState) -> None:
    found = differences(wanted, seen)
    rows = deviations(found, wanted, seen)
    assert sorted(path for row in rows for path in row.paths) == sorted(one.path for one in found)
    assert len({(row.port, row.key) for row in rows}) == len(rows)
    for row in rows:
        assert row.title
        assert row.unknown == all(one.unknown for one in found if one.path in row.paths)


def _node(settings_: PortSettings, name: str = "eth0") -> NodeState:
    return NodeState(ports=(PortState(name, settings=settings_),))


def _one(wanted: PortSettings, seen: PortSettings) -> settings.Deviation:
    want, have = _node(wanted), _node(seen)
    (row,) = deviations(differences(want, have), want, have)
    return row


def _class(**values: Any) -> PortSettings:
    classes = tuple(
        ClassState(**{"pfc_tx": False, "pfc_rx": False} | (values if i == 3 else {})) for i in range(8)
    )
    return PortSettings(qos=QosState(classes=classes))


def _row(wanted: PortSettings, seen: PortSettings) -> tuple[str, str, str]:
    row = _one(wanted, seen)
    return row.setting, row.found, row.wanted


ECN = Ecn(Amount(150_000), Amount(1_500_000), 7.5)


@pytest.mark.parametrize(
    ("wanted", "seen", "row"),
    [
        (PortSettings(Mtu(9000)), PortSettings(Mtu(1500)), ("eth0 mtu", "1500", "9000")),
        (
            _class(pfc_tx=True, pfc_rx=True),
            _class(pfc_rx=True),
            ("eth0 PFC priorities", "3 (receive only)", "3"),
        ),
        (
            _class(pfc_tx=True, pfc_rx=True),
            _class(pfc_tx=UNKNOWN),
            ("eth0 PFC priorities", "unknown (could not be read)", "3"),
        ),
        (_class(watchdog=True), _class(watchdog=False), ("eth0 watchdog priorities", "none", "3")),
        (
            _class(ecn=ECN),
            _class(ecn=None),
            ("eth0 priority 3 ECN", "none", "kmin 150KB kmax 1500KB pmax 7.5%"),
        ),
        (
            _class(ecn=Ecn(Amount(55, "percent"), Amount(90, "percent"))),
            _class(ecn=Ecn(Amount(6000, "cells"), Amount(1_000_001))),
            (
                "eth0 priority 3 ECN",
                "kmin 6000 cells kmax 1000001B pmax 100%",
                "kmin 55% kmax 90% pmax 100%",
            ),
        ),
        (
            _class(ecn=Ecn(Amount(1), Amount(2), others=(("red", Amount(1), Amount(1), 5.0),))),
            _class(ecn=Ecn(Amount(1), Amount(2), others=())),
            (
                "eth0 priority 3 ECN",
                "kmin 1B kmax 2B pmax 100%",
                "kmin 1B kmax 2B pmax 100%; red kmin 1B kmax 1B pmax 5%",
            ),
        ),
        (
            _class(share=Share("strict", 0, 50)),
            _class(share=Share("strict", 0, None)),
            ("eth0 priority 3 scheduler", "strict", "strict at most 50%"),
        ),
        (
            _class(headroom=None),
            _class(headroom=Amount(64_000)),
            ("eth0 priority 3 headroom", "64KB", "none"),
        ),
        (
            PortSettings(qos=QosState(watchdog=WatchdogTimers(detect_ms=200))),
            PortSettings(qos=QosState(watchdog=WatchdogTimers(detect_ms=100))),
            ("eth0 watchdog detect", "100ms", "200ms"),
        ),
        (
            PortSettings(marking=Marking(np=())),
            PortSettings(marking=Marking(np=(3, 4))),
            ("eth0 DCQCN notification point", "3,4", "none"),
        ),
        (
            PortSettings(marking=Marking(parameters=(("rp_ai_rate", "5"),))),
            PortSettings(marking=Marking(parameters=(("rp_ai_rate", NOT_APPLICABLE),))),
            ("eth0 DCQCN rp_ai_rate", "not applicable", "5"),
        ),
        (
            PortSettings(qos=QosState(global_pause=False)),
            PortSettings(qos=QosState(global_pause=True)),
            ("eth0 global pause", "on", "off"),
        ),
    ],
)
def test_rows(wanted: PortSettings, seen: PortSettings, row: tuple[str, str, str]) -> None:
    assert _row(wanted, seen) == row


def test_a_port_that_was_not_read_is_told_as_such() -> None:
    want = _node(PortSettings(Mtu(9000), marking=Marking(parameters=(("np_x", "1"),))))
    rows = deviations(differences(want, NodeState()), want, NodeState())
    assert {(row.title, row.found, row.unknown) for row in rows} == {
        ("mtu", "port not found", True),
        ("DCQCN np_x", "port not found", True),
    }


def test_node_wide_rows() -> None:
    want = NodeState(SystemState(modules=(("rdma_cm", True),), sysctl=(("net.ipv4.tcp_ecn", "1"),)))
    seen = NodeState(SystemState(modules=(("rdma_cm", False),)))
    rows = deviations(differences(want, seen), want, seen)
    assert [(row.setting, row.found, row.wanted) for row in rows] == [
        ("sysctl net.ipv4.tcp_ecn", "unknown (could not be read)", "1"),
        ("module rdma_cm", "off", "on"),
    ]


def test_paths_of_ports_with_dots() -> None:
    assert split_path("ports.eth0.100.mtu.ip") == ("eth0.100", "mtu.ip")
    assert split_path("ports.Ethernet1/1.qos.classes.3.pfc_tx") == ("Ethernet1/1", "qos.classes.3.pfc_tx")
    assert split_path("system.sysctl.net.ipv4.tcp_ecn") == ("", "sysctl.net.ipv4.tcp_ecn")


def test_dscp_map() -> None:
    table = [0] * 64
    table[24:32] = [3] * 8
    table[48] = 6
    assert dscp_map(tuple(table)) == "24-31->3, 48->6, rest->0"
    assert dscp_map(UNMANAGED) == "unmanaged"
    assert text(()) == "none"
    assert Difference("a", 1, UNKNOWN).unknown
