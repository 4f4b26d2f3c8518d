"""Findings: order, text forms, and the error that carries them."""

from __future__ import annotations

import pickle
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rdma_fabric.findings import (
    INPUT_CODES,
    Finding,
    InputError,
    Place,
    Position,
    Severity,
    check_tuple,
    did_you_mean,
    input_finding,
    natural,
)


def _finding(line: int, node: str = "", file: str = "a.yaml") -> Finding:
    return input_finding(
        "schema", "wrong", Position(file, line, 1), "mend it", places=(Place(node),) if node else ()
    )


def test_severity_compares_and_prints_as_a_word() -> None:
    assert Severity.NOTE < Severity.WARNING < Severity.ERROR
    assert [str(one) for one in Severity] == ["note", "warning", "error"]


def test_position_and_place_text() -> None:
    assert str(Position("hosts.yaml", 41, 12)) == "hosts.yaml:41:12"
    assert str(Position("hosts.yaml", 0, 0)) == "hosts.yaml"
    assert str(Place("gpu07", "eth2", network="compute")) == "gpu07 eth2"
    assert str(Place(link="a:1 - b:2")) == "link a:1 - b:2"
    assert str(Place(network="compute")) == "network compute"


def test_natural_order() -> None:
    names = ["leaf10", "leaf2", "leaf", "leaf0", "leaf02", "eth1/10", "eth1/9", "10", "9", "leaf2a"]
    assert sorted(names, key=natural) == [
        "9", "10", "eth1/9", "eth1/10", "leaf", "leaf0", "leaf02", "leaf2", "leaf2a", "leaf10",
    ]  # fmt: skip


def test_natural_survives_a_number_too_long_for_int() -> None:
    assert natural("x" + "1" * 5000) < natural("x" + "1" * 5001)


@given(st.lists(st.integers(0, 10**30)))
def test_natural_orders_numbers_as_numbers(numbers: list[int]) -> None:
    assert [int(text) for text in sorted(map(str, numbers), key=natural)] == sorted(numbers)


@given(st.lists(st.text("a0129/", max_size=6), unique=True))
def test_natural_is_a_total_order(names: list[str]) -> None:
    ordered = sorted(names, key=natural)
    assert all(natural(a) < natural(b) for a, b in pairwise(ordered))


def test_findings_sort_by_position_then_node() -> None:
    late, early, other = _finding(9, "leaf2"), _finding(9, "leaf10"), _finding(2, file="b2.yaml")
    nowhere = input_finding("file", "gone", None, "look")
    first = _finding(1, file="b10.yaml")
    assert sorted([nowhere, first, early, late, other], key=lambda one: one.sort_key()) == [
        late, early, other, first, nowhere,
    ]  # fmt: skip


def test_input_error_sorts_drops_twins_and_pickles() -> None:
    error = InputError([_finding(3), _finding(1), _finding(3)])
    assert [one.position and one.position.line for one in error.findings] == [1, 3]
    assert str(error).splitlines()[0] == "a.yaml:1:1: FAB005 schema: wrong"
    assert pickle.loads(pickle.dumps(error)).findings == error.findings


def test_check_tuple() -> None:
    assert check_tuple(_finding(4, "leaf01")) == ("FAB005", ("leaf01",), 4)
    assert check_tuple(input_finding("file", "gone", None, "look")) == ("FAB001", (), 0)


def test_input_codes_lie_in_the_reserved_range_and_are_unique() -> None:
    assert set(INPUT_CODES.values()) <= {f"FAB00{n}" for n in range(1, 10)}
    assert len(set(INPUT_CODES.values())) == len(INPUT_CODES)


def test_did_you_mean() -> None:
    assert did_you_mean("priorty", ["priority", "dscp"]) == "priority"
    assert did_you_mean("DSCP", ["priority", "dscp"]) == "dscp"
    assert did_you_mean("zebra", ["priority", "dscp"]) == ""
