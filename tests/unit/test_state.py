"""Comparing states: what is a difference, what is not, and what a record of our own settings holds."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given

from rdma_fabric.state import (
    NOT_APPLICABLE,
    NOT_READ,
    UNKNOWN,
    UNMANAGED,
    Absent,
    Amount,
    ClassState,
    Difference,
    Ecn,
    Marking,
    Mtu,
    NodeState,
    NotJudged,
    PortSettings,
    PortState,
    QosState,
    Share,
    SystemState,
    differences,
    forget_unknown,
    known,
    owned_part,
    pfc_priorities,
    value_or,
)
from tests.support.states import full_states, node_states, steady

RAMP = Ecn(Amount(150_000), Amount(1_500_000))


def _node(**qos: Any) -> NodeState:
    return NodeState(ports=(PortState("eth0", settings=PortSettings(qos=QosState(**qos))),))


def _settings(part: str, value: Any) -> PortSettings:
    return replace(PortSettings(), **{part: value})


def _classes(**of_three: Any) -> NodeState:
    return _node(classes=tuple(ClassState(**of_three) if i == 3 else ClassState() for i in range(8)))


def _leaves(value: Any) -> list[Any]:
    """Every value below the structures: the oracle walks the fields without the code under test."""
    if isinstance(value, Absent) or not (is_dataclass(value) or isinstance(value, tuple)):
        return [value]
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    return [leaf for item in fields(value) if item.compare for leaf in _leaves(getattr(value, item.name))]


@steady
@given(node_states)
def test_a_state_differs_from_itself_only_where_it_is_unknown(state: NodeState) -> None:
    assert all(one.wanted is UNKNOWN for one in differences(deepcopy(state), state))


@steady
@given(full_states)
def test_unmanaged_owns_nothing(state: NodeState) -> None:
    assert differences(NodeState(), state) == ()
    blank = NodeState(ports=tuple(PortState(port.name) for port in state.ports))
    assert differences(blank, state) == ()
    assert _owned(owned_part(state, blank)) == []


def _owned(state: NodeState) -> list[Any]:
    found = [leaf for port in state.ports for leaf in _leaves(port.settings)]
    return [leaf for leaf in (*found, *_leaves(state.system)) if leaf is not UNMANAGED]


@steady
@given(full_states, full_states)
def test_own_part_holds_exactly_what_the_wish_owns(seen: NodeState, wanted: NodeState) -> None:
    part = owned_part(seen, wanted)
    assert not differences(forget_unknown(part), seen)
    shared = {port.name for port in wanted.ports} & {port.name for port in seen.ports}
    assert {port.name for port in part.ports} == shared
    for kind in ("sysctl", "modules", "module_options", "limits", "environment"):
        assert [name for name, _ in getattr(part.system, kind)] == [
            name for name, _ in getattr(wanted.system, kind)
        ]


@steady
@given(node_states)
def test_what_could_not_be_read_is_forgotten_everywhere(state: NodeState) -> None:
    found = _leaves(forget_unknown(state))
    assert UNKNOWN not in [leaf for leaf in found if isinstance(leaf, Absent)]
    kept = [leaf for leaf in _leaves(state) if leaf is not UNKNOWN and leaf is not UNMANAGED]
    assert [leaf for leaf in found if leaf is not UNMANAGED] == kept


@steady
@given(full_states)
def test_nothing_read_leaves_every_owned_field_of_a_port_unknown(state: NodeState) -> None:
    found = differences(NodeState(ports=state.ports), NodeState())
    assert all(one.unknown for one in found)
    unread = NodeState(ports=tuple(PortState(port.name, settings=NOT_READ) for port in state.ports))
    assert differences(NodeState(ports=state.ports), unread) == found


def test_every_field_of_a_port_is_compared() -> None:
    """One difference per leaf field: a field that `differences` skips would never drift."""
    for part, cls in (("mtu", Mtu), ("marking", Marking), ("qos", QosState)):
        for item in fields(cls):
            if item.name in ("classes", "watchdog", "parameters"):
                continue
            value: Any = (1,) if "priority" in item.name or item.name in ("np", "rp") else 1
            found = differences(_settings(part, cls(**{item.name: value})), PortSettings())
            assert found == (Difference(f"{part}.{item.name}", value, UNMANAGED),)
    for item in fields(ClassState):
        assert [one.path for one in differences(_classes(**{item.name: 1}), _node())] == [
            f"ports.eth0.qos.classes.3.{item.name}"
        ]


@pytest.mark.parametrize("found", [UNKNOWN, UNMANAGED, NOT_APPLICABLE, False, None])
def test_a_wished_value_is_met_by_no_absence(found: Any) -> None:
    (one,) = differences(_classes(pfc_tx=True), _classes(pfc_tx=found))
    assert one.unknown == (found is UNKNOWN)


def test_off_is_not_unknown() -> None:
    assert differences(_classes(ecn=None), _classes(ecn=None)) == ()
    (one,) = differences(_classes(ecn=None), _classes(ecn=UNKNOWN))
    assert one.unknown


def test_an_empty_set_of_priorities_is_a_value() -> None:
    wish = PortSettings(marking=Marking(np=()))
    assert differences(wish, PortSettings(marking=Marking(np=()))) == ()
    assert differences(wish, PortSettings(marking=Marking(np=(3,)))) == (Difference("marking.np", (), (3,)),)
    assert differences(wish, PortSettings(marking=Marking(np=UNKNOWN)))[0].unknown


class TestColoursAndCaps:
    """Parts of a ramp or share that the wish leaves open."""

    OTHERS = (("red", Amount(1), Amount(2), 5.0),)

    def test_other_colours_count_only_when_wished(self) -> None:
        seen = replace(RAMP, others=self.OTHERS)
        assert differences(_classes(ecn=RAMP), _classes(ecn=seen)) == ()
        (one,) = differences(_classes(ecn=replace(RAMP, others=())), _classes(ecn=seen))
        assert (one.path, one.unknown) == ("ports.eth0.qos.classes.3.ecn", False)

    def test_a_part_that_could_not_be_read_is_unknown_not_wrong(self) -> None:
        wish = _classes(ecn=replace(RAMP, others=self.OTHERS))
        (one,) = differences(wish, _classes(ecn=replace(RAMP, others=UNKNOWN)))
        assert one.unknown
        (one,) = differences(wish, _classes(ecn=Ecn(Amount(1), Amount(2), others=UNKNOWN)))
        assert not one.unknown

    def test_a_cap_counts_only_when_wished(self) -> None:
        capped = _classes(share=Share("strict", 0, 50))
        assert differences(_classes(share=Share("strict")), capped) == ()
        assert len(differences(capped, _classes(share=Share("strict", 0, None)))) == 1
        assert differences(capped, _classes(share=Share("strict", 0, UNKNOWN)))[0].unknown

    def test_the_record_holds_no_foreign_colour_or_cap(self) -> None:
        seen = _classes(ecn=replace(RAMP, others=self.OTHERS), share=Share("dwrr", 7, 50))
        kept = owned_part(seen, _classes(ecn=RAMP, share=Share("dwrr", 50)))
        assert kept.ports[0].settings.qos.classes[3] == ClassState(ecn=RAMP, share=Share("dwrr", 7))


def test_pairs_are_compared_by_name() -> None:
    wish = NodeState(SystemState(sysctl=(("a", "1"), ("b", "2"))))
    seen = NodeState(SystemState(sysctl=(("b", "3"), ("c", "9"))))
    assert differences(wish, seen) == (
        Difference("system.sysctl.a", "1", UNKNOWN),
        Difference("system.sysctl.b", "2", "3"),
    )
    assert owned_part(seen, wish).system.sysctl == (("a", UNKNOWN), ("b", "3"))


def test_a_wish_without_ports_owns_none() -> None:
    assert differences(NodeState(), _classes(pfc_tx=True)) == ()


def test_pfc_priorities() -> None:
    off = ClassState(pfc_tx=False, pfc_rx=False)
    classes = [off] * 8
    classes[3] = ClassState(pfc_tx=False, pfc_rx=True)
    assert pfc_priorities(QosState(classes=tuple(classes))) == (3,)
    classes[5] = ClassState(pfc_tx=UNKNOWN, pfc_rx=False)
    assert pfc_priorities(QosState(classes=tuple(classes))) is UNKNOWN


def test_known_and_value_or() -> None:
    assert known(0) == 0
    assert value_or(UNKNOWN, 5) == 5
    with pytest.raises(NotJudged, match="PFC is unknown") as caught:
        known(UNKNOWN, "PFC")
    assert caught.value.absent is UNKNOWN
