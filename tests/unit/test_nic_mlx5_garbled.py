"""Garbled output of the mlx5 tools: what is not understood is not known, and never a wrong value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rdma_fabric.platforms import _nic_mlx5_card as cards
from rdma_fabric.platforms import _nic_mlx5_nv as nv
from rdma_fabric.platforms import _nic_mlx5_read as reader
from rdma_fabric.platforms._host_files import Section
from rdma_fabric.state import Absent

OBSERVE = Path(__file__).resolve().parents[1] / "observe" / "nic_mlx5"
CARD = yaml.safe_load((OBSERVE / "card.yaml").read_text("utf-8"))
DCB = yaml.safe_load((OBSERVE / "dcb.yaml").read_text("utf-8"))["sections"]
TABLE = [{26: 3, 48: 6}.get(point, 0) for point in range(64)]


def _points() -> Iterator[str]:
    for priority in sorted(set(TABLE)):
        listed = [f"{point:02d}," for point, one in enumerate(TABLE) if one == priority]
        for first in range(0, len(listed), 8):
            yield f"\tprio:{priority} dscp:{''.join(listed[first : first + 8])}"


WHOLE = "\n".join(
    [
        "DCBX mode: OS controlled",
        "Priority trust state: dscp",
        "dscp2prio mapping:",
        *_points(),
        "Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=262016",
        "Cable len: 20",
        "PFC configuration:",
        "\tpriority    0   1   2   3   4   5   6   7",
        "\tenabled     0   0   0   1   0   0   0   0   ",
        "\tbuffer      0   0   0   1   0   0   0   0   ",
        *(
            f"tc: {tc} ratelimit: {'40.0 Gbps' if tc == 6 else 'unlimited'}, tsa: "
            f"{'strict' if tc == 6 else f'ets, bw: {50 if tc in (0, 3) else 0}%'}\n\t priority:  {tc}"
            for tc in range(8)
        ),
    ]
)
JUNK = ("???", "Segmentation fault (core dumped)", "\t???  0 1", "tc: ? tsa: ets", "priority", "\x00")
WORDS = ("N/A", "-1", "1e3", "0x1", "", "99999999999", "٣", "1 2")
"""In place of a number; the last but one is an Arabic digit, which Python's int() would take."""


def garbled(text: str) -> Iterator[tuple[str, str]]:
    """(what was done, the text) for every line and every number of it."""
    lines = text.split("\n")
    for index, line in enumerate(lines):
        yield f"without line {index}", "\n".join((*lines[:index], *lines[index + 1 :]))
        yield f"line {index} twice", "\n".join((*lines[: index + 1], *lines[index:]))
        yield f"up to line {index}", "\n".join(lines[:index])
        for junk in JUNK:
            yield f"{junk!r} for line {index}", "\n".join((*lines[:index], junk, *lines[index + 1 :]))
            yield f"{junk!r} before line {index}", "\n".join((*lines[:index], junk, *lines[index:]))
        for match in re.finditer(r"[0-9]+", line):
            for word in WORDS:
                other = line[: match.start()] + word + line[match.end() :]
                yield f"{word!r} in {line!r}", "\n".join((*lines[:index], other, *lines[index + 1 :]))


def wrong(right: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """What is neither as it was nor unknown."""
    return {key: value for key, value in found.items() if value != right.get(key) and not unknown(value)}


def unknown(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(unknown, value))
    return isinstance(value, Absent) or (isinstance(value, str) and "?" in value)


def test_the_whole_print_is_understood() -> None:
    found = reader.mlnx_qos(WHOLE)
    assert found["DSCP2PRIO"] == ",".join(map(str, TABLE))
    assert found["BUFFERS"] == "130944,130944,0,0,0,0,0,0"
    assert found["RATELIMIT"] == "0,0,0,0,0,0,40,0" and found["TCBW"] == "50,0,0,50,0,0,0,0"
    assert len(found) == 11 and not any(map(unknown, found.values()))


def test_mlnx_qos() -> None:
    right = reader.mlnx_qos(WHOLE)
    for what, text in garbled(WHOLE):
        assert wrong(right, reader.mlnx_qos(text)) == {}, what


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("tsa: strict", "tsa: unknown", ("PRIO_TC", "TSA", "TCBW", "RATELIMIT")),
        ("40.0 Gbps", "40.5 Gbps", ("RATELIMIT",)),
        ("tc: 6 ratelimit: 40.0 Gbps, tsa: strict", "strict", ("PRIO_TC", "TSA", "TCBW", "RATELIMIT")),
        ("state: dscp", "state: both", ("TRUST", "DSCP2PRIO")),
        ("OS controlled", "Somebody controlled", ("DCBX",)),
        ("\tprio:3 dscp:26,", "\tprio:3 dscp:26,27,", ("DSCP2PRIO",)),
        ("0   1   2   3   4   5   6   7", "7   6   5   4   3   2   1   0", ("PFC", "PRIO2BUFFER")),
        ("enabled     0", "enabled     2", ("PFC",)),
        ("bw: 50%", "bw: 101%", ("PRIO_TC", "TSA", "TCBW", "RATELIMIT")),
    ],
)
def test_one_odd_word_costs_its_table(old: str, new: str, lost: tuple[str, ...]) -> None:
    right, found = reader.mlnx_qos(WHOLE), reader.mlnx_qos(WHOLE.replace(old, new, 1))
    for key, value in right.items():
        assert unknown(found.get(key, "?")) if key in lost else found[key] == value, key


@pytest.mark.parametrize(
    "text",
    [
        WHOLE.replace("\n", "\r\n"),
        WHOLE.replace("max_buffer_size=262016", ""),
        WHOLE.replace("Receive", "default priority:\nReceive"),
        WHOLE.replace("\t", "        "),
        "****** WARNING: lldpad service is running and may overwrite your settings ******\n\n" + WHOLE,
    ],
    ids=["crlf", "no total", "default priority", "blanks", "warning"],
)
def test_layouts_of_other_releases(text: str) -> None:
    assert reader.mlnx_qos(text) == reader.mlnx_qos(WHOLE)


FULL_APP = json.dumps({"dscp_prio": [[point, one, " "] for point, one in enumerate(TABLE)]})
SECTIONS = {**DCB, "app": FULL_APP}
ODD: tuple[Any, ...] = (None, "x", "1", 1, -1, 8, 1.5, True, [], {}, [1], [[1, 2, 3]])


def _dcb(sections: Mapping[str, str]) -> dict[str, str]:
    return reader.dcb({f"{name} eth0": Section(text, 0, True) for name, text in sections.items()}, "eth0")


def odd_json(value: Any) -> Iterator[Any]:
    """The value with each of its parts replaced or taken out."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: one for name, one in value.items() if name != key}
            yield from ({**value, key: one} for one in (*ODD, *odd_json(inner)))
    elif isinstance(value, list):
        yield [*value, *value[-1:]]
        for index, inner in enumerate(value):
            yield [*value[:index], *value[index + 1 :]]
            yield from ([*value[:index], one, *value[index + 1 :]] for one in (*ODD, *odd_json(inner)))


LEGAL: Mapping[str, Callable[[str], bool]] = {
    # Another legal number is another value, whatever wrote it.
    "TRUST": lambda text: text == "pcp",
    "CABLE": lambda text: text in ("1", "8"),
    "PRIO_TC": lambda text: set(text.split(",")) <= set("01234567"),
    "PRIO2BUFFER": lambda text: set(text.split(",")) <= set("01234567"),
    "TCBW": lambda text: all(0 <= int(word) <= 100 for word in text.split(",")),
    "BUFFERS": lambda text: all(word.isdigit() for word in text.split(",")),
    "DSCP2PRIO": lambda text: len(text.split(",")) == 64 and set(text.split(",")) <= set("01234567"),
    "PFC": lambda text: set(text.split(",")) <= {"0", "1"} and len(text.split(",")) == 8,
}


@pytest.mark.parametrize("name", ["pfc", "ets", "buffer", "app"])
def test_dcb_json(name: str) -> None:
    right = _dcb(SECTIONS)
    assert right["DSCP2PRIO"] == ",".join(map(str, TABLE)) and right["TRUST"] == "dscp"
    for odd in odd_json(json.loads(SECTIONS[name])):
        found = wrong(right, _dcb({**SECTIONS, name: json.dumps(odd)}))
        assert [key for key, value in found.items() if not LEGAL[key](value)] == [], odd


@pytest.mark.parametrize("text", ["", "null", "[]", "{", "Attribute read: Operation not supported", "1"])
def test_dcb_that_is_no_object(text: str) -> None:
    for name in SECTIONS:
        assert wrong(_dcb(SECTIONS), _dcb({**SECTIONS, name: text})) == {}


DCB_TEXT = {
    "pfc": "pfc-cap 8 macsec-bypass off delay 20 \nprio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off\n",
    "ets": (
        "willing off ets-cap 8 cbs off \ntc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:100 7:0 \n"
        "pg-bw 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0 \n"
        "tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets \n"
        "prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7 \n"
    ),
    "app": "dscp-prio " + " ".join(f"{point}:{one}" for point, one in enumerate(TABLE)) + " \n",
    "dcbx": "host ieee \n",
    "buffer": "prio-buffer 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0 \nbuffer-size 0:128Kb 1:128Kb 2:0b\n",
}


def test_dcb_without_json() -> None:
    found, right = _dcb(DCB_TEXT), _dcb(SECTIONS)
    # Sizes are rounded in the text, so they are not known.
    assert found == {key: value for key, value in right.items() if key != "BUFFERS"}
    named = DCB_TEXT["app"].replace(" 26:3", " AF31:3").replace(" 48:6", " CS6:6").replace(" 46:0", " EF:0")
    assert _dcb({**DCB_TEXT, "app": named}) == found
    for name, text in DCB_TEXT.items():
        for what, odd in garbled(text):
            if not (name == "app" and odd.strip() == ""):
                left = wrong(found, _dcb({**DCB_TEXT, name: odd}))
                assert left == {}, (name, what)


def test_mlxconfig() -> None:
    text = CARD["mlxconfig"][0]["text"]
    right = nv.query(text) or {}
    for what, odd in garbled(text):
        found = nv.query(odd) or {}
        halves = [
            one for key, pair in found.items() if key in right for one in zip(right[key], pair, strict=True)
        ]
        assert all(now == was or isinstance(now, Absent) for was, now in halves), what


READERS: Mapping[str, Callable[[Section], Mapping[str, Any]]] = {
    "ethtool": cards.ethtool,
    "devinfo": cards.devinfo,
}


@pytest.mark.parametrize("name", READERS)
def test_versions(name: str) -> None:
    text = CARD[name][0]["text"]
    right = READERS[name](Section(text, 0, True))
    for what, odd in garbled(text):
        found = wrong(right, READERS[name](Section(odd, 0, True)))
        # A driver's version may be any text that begins with a number.
        assert {key for key in found if key != "driver"} == set(), what


@pytest.mark.parametrize("name", ["gid_files", "show_gids"])
def test_gids(name: str) -> None:
    text = CARD[name][0]["text"].rstrip("\n")
    for what, odd in garbled(text):
        found = getattr(cards, name)(Section(odd, 0, True), "eth0")
        # One GID less is one that nobody told of; none that is no GID for RoCE v2 may be told.
        assert isinstance(found, Absent) or set(found) <= {3}, what


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (reader.pause, "Pause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff"),
        (reader.stall, "pfc-prevention-tout: 200"),
        (reader.tclass, "Global tclass=106"),
    ],
)
def test_small_ones(read: Callable[[Section], Mapping[str, Any]], text: str) -> None:
    right = read(Section(text, 0, True))
    for what, odd in garbled(text):
        if odd.strip():
            assert wrong(right, read(Section(odd, 0, True))) == {}, what
        assert read(Section(odd, 1, True)) == {}, what
