"""States as JSON: everything comes back as it was, and what does not fit is refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdma_fabric.codec import FormatError, dump_observations, from_json, load_observations, to_json
from rdma_fabric.findings import InputError
from rdma_fabric.state import (
    UNKNOWN,
    UNMANAGED,
    ClassState,
    NodeState,
    Observation,
    PortSettings,
    PortState,
    QosState,
    SystemState,
)
from tests.support.states import node_states, observations, steady


@steady
@given(node_states)
def test_a_state_comes_back(state: NodeState) -> None:
    text = json.dumps(to_json(state), allow_nan=False)
    assert from_json(NodeState, json.loads(text)) == state


@steady
@given(st.dictionaries(st.sampled_from(["leaf01", "gpu1", "a-b.c"]), observations, max_size=2))
def test_observations_come_back_and_are_written_alike(found: dict[str, Observation]) -> None:
    text = dump_observations(found)
    assert load_observations(text, "seen.json") == found
    assert dump_observations(load_observations(text, "seen.json")) == text


def test_the_three_absences_and_nothing_are_told_apart() -> None:
    for value in (UNKNOWN, UNMANAGED, None):
        state = _three(ClassState(ecn=value))
        assert from_json(NodeState, to_json(state)) == state
    assert to_json(ClassState(ecn=UNKNOWN)) == {"ecn": "@unknown"}
    assert to_json(ClassState(ecn=None)) == {"ecn": None}
    assert to_json(ClassState()) == {}


def _three(one: ClassState) -> NodeState:
    classes = tuple(one if index == 3 else ClassState() for index in range(8))
    return NodeState(ports=(PortState("p", settings=PortSettings(qos=QosState(classes=classes))),))


def test_a_text_that_looks_like_an_absence_stays_a_text() -> None:
    state = NodeState(SystemState(environment=(("A", "@unknown"), ("B", "@@x"), ("C", UNKNOWN))))
    assert to_json(state)["system"]["environment"] == {"A": "@@unknown", "B": "@@@x", "C": "@unknown"}
    assert from_json(NodeState, to_json(state)) == state


def test_a_short_file_by_hand_is_enough() -> None:
    text = """{"version": 1, "nodes": {"leaf01": {"running": {"ports": [
        {"name": "e1", "settings": {"qos": {"classes": {"3": {"pfc_tx": true}}}}}]}}}}"""
    port = load_observations(text, "seen.json")["leaf01"].running.ports[0]
    assert port.settings.qos.classes[3] == ClassState(pfc_tx=True)
    assert port.settings.qos.classes[4] == ClassState()


def _port(**settings: Any) -> dict[str, Any]:
    return {"running": {"ports": [{"name": "e1", "settings": settings}]}}


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({}, "nodes.n: field running is missing"),
        ({"runing": {}}, "nodes.n.runing: unknown field, did you mean running?"),
        ([], r"nodes.n: found \[\], wanted an object"),
        ({"running": "@unknown"}, 'nodes.n.running: found "@unknown", wanted an object'),
        ({"running": {"ports": [{}]}}, r"nodes.n.running.ports\[0\]: field name is missing"),
        (_port(mtu={"ip": "9000"}), r'settings.mtu.ip: found "9000", wanted int'),
        (_port(mtu={"ip": True}), "settings.mtu.ip: found true, wanted int"),
        (_port(mtu={"ip": "@nothing"}), "settings.mtu.ip"),
        (_port(qos={"classes": "@unknown"}), "settings.qos.classes: found .* wanted a list"),
        (_port(qos={"classes": [{}]}), "settings.qos.classes: found 1 entries, wanted 8"),
        (_port(qos={"dscp_to_priority": [0] * 63}), "dscp_to_priority: found 63 entries, wanted 64"),
        (_port(qos={"pcp_to_priority": []}), "pcp_to_priority: found 0 entries, wanted 8"),
        (_port(qos={"trust": "dcsp"}), "'dcsp' is not one of 'dscp', 'pcp', 'both', 'port'"),
        (_port(marking={"parameters": {"np_x": 5}}), "parameters.np_x: found 5, wanted str"),
        ({"running": {}, "notes": ["@x"]}, "begins with @@"),
    ],
)
def test_what_is_no_state_is_refused_with_its_place(node: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        from_json(Observation, node, "nodes.n")
    with pytest.raises(InputError) as caught:
        load_observations(json.dumps({"version": 1, "nodes": {"n": node}}), "seen.json")
    assert caught.value.findings[0].position is not None
    assert caught.value.findings[0].position.file == "seen.json"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", 'no "nodes" object'),
        ('{"version": 1}', 'no "nodes" object'),
        ('{"version": 2, "nodes": {}}', "version 2 is not 1"),
        ('{"nodes": {}}', "version None is not 1"),
        ('{"version": 1, "nodes": {"n": {"running": {"ports": NaN}}}}', "NaN is not a number"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "not JSON"),
    ],
)
def test_what_is_no_file_of_states_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_observations(text, "seen.json")
    assert message in caught.value.findings[0].message


@steady
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(["@unknown", "x", "ports"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["running", "ports", "name", "settings", "qos", "classes", "3"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_a_state_or_refused(data: Any) -> None:
    try:
        found = from_json(Observation, data)
    except FormatError:
        return
    assert isinstance(found, Observation)
