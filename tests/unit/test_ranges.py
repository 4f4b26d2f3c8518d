"""Ranges of names: expanding, refusing, zipping, collapsing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdma_fabric.findings import natural
from rdma_fabric.inventory.ranges import check_name, check_node_name, collapse, expand, zip_ranges

steady = settings(derandomize=True, deadline=None)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("leaf01", ["leaf01"]),
        ("leaf[08-10]", ["leaf08", "leaf09", "leaf10"]),
        ("gpu[8-10]", ["gpu8", "gpu9", "gpu10"]),
        ("eth[0-1]", ["eth0", "eth1"]),
        ("Ethernet[1-2]/1", ["Ethernet1/1", "Ethernet2/1"]),
        ("a[1-2]b[3-4]", ["a1b3", "a1b4", "a2b3", "a2b4"]),
        ("leaf[1-2,7]", ["leaf1", "leaf2", "leaf7"]),
        ("leaf[7,1-2]", ["leaf7", "leaf1", "leaf2"]),
        ("192.0.2.[11-12]", ["192.0.2.11", "192.0.2.12"]),
        ("[0-1]", ["0", "1"]),
        ("leaf[01]", ["leaf01"]),
        ("et-0/0/[0-1]:[2-3]", ["et-0/0/0:2", "et-0/0/0:3", "et-0/0/1:2", "et-0/0/1:3"]),
        ("x[099-100]", ["x099", "x100"]),
    ],
)
def test_expand(text: str, names: list[str]) -> None:
    assert list(expand(text)) == names


def test_longest_can_be_raised_for_host_names() -> None:
    assert expand("x" * 100, longest=253) == ("x" * 100,)


def test_names() -> None:
    assert check_name("Ethernet1/1:2") == "Ethernet1/1:2"
    assert check_node_name("leaf01.pod-1_a") == "leaf01.pod-1_a"
    for odd in ("a/../b", "a:b", "..", ""):
        with pytest.raises(ValueError):
            check_node_name(odd)


def test_zip() -> None:
    assert zip_ranges("gpu[01-03]", "eth0", "leaf01", "Ethernet[1-3]/1") == (
        ("gpu01", "eth0", "leaf01", "Ethernet1/1"),
        ("gpu02", "eth0", "leaf01", "Ethernet2/1"),
        ("gpu03", "eth0", "leaf01", "Ethernet3/1"),
    )
    assert zip_ranges("a", "b") == (("a", "b"),)
    assert zip_ranges() == ()


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["leaf"], "leaf"),
        (["leaf01"], "leaf01"),
        (["leaf02", "leaf01", "leaf03"], "leaf[01-03]"),
        (["leaf1", "leaf2", "leaf4"], "leaf[1-2,4]"),
        (["leaf9", "leaf10"], "leaf[9-10]"),
        (["leaf08", "leaf09", "leaf10"], "leaf[08-10]"),
        (["leaf1", "leaf01"], "leaf01,leaf1"),
        (["Ethernet1/1", "Ethernet2/1"], "Ethernet[1-2]/1"),
        (["a1b3", "a1b4", "a2b3", "a2b4"], "a[1-2]b[3-4]"),
        (["a1b3", "a1b4", "a2b3"], "a1b[3-4],a2b3"),
        (["spine1", "leaf1", "leaf2", "leaf"], "leaf,leaf[1-2],spine1"),
        (["leaf1", "leaf1"], "leaf1"),
    ],
)
def test_collapse(names: list[str], text: str) -> None:
    assert collapse(names) == text


def _split_groups(text: str) -> list[str]:
    groups, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and not depth:
            groups.append("")
        else:
            groups[-1] += char
    return groups


names = st.from_regex(r"[ab][0-9]{0,3}([:/][0-9]{1,2})?", fullmatch=True)


@steady
@given(st.lists(names, min_size=1, max_size=30))
def test_collapsed_text_expands_to_the_same_names(some: list[str]) -> None:
    groups = _split_groups(collapse(some))
    back = [name for group in groups for name in expand(group)]
    assert sorted(back) == sorted(set(some))


@steady
@given(st.integers(0, 50), st.integers(1, 60), st.integers(0, 4), st.integers(1, 9))
def test_one_rectangle_collapses_to_one_text(first: int, count: int, width: int, inner: int) -> None:
    width = max(width, len(str(first + count - 1))) if width > 1 else 0
    expected = [f"leaf{n:0{width}d}/{m}" for n in range(first, first + count) for m in range(1, inner + 1)]
    text = collapse(reversed(expected))
    assert list(expand(text)) == sorted(expected, key=natural) == expected


@steady
@given(st.text(max_size=12))
def test_whatever_expands_is_plain_ascii(text: str) -> None:
    try:
        found = expand(text)
    except ValueError as error:
        assert all(c.isprintable() for c in str(error))
    else:
        assert all(check_name(name) == name and name.isascii() for name in found)


@steady
@given(st.text("ab01-[],", max_size=14))
def test_brackets_never_survive(text: str) -> None:
    try:
        found = expand(text)
    except ValueError:
        return
    assert len(set(found)) == len(found)
    assert not any(set(name) & set("[],") for name in found)
