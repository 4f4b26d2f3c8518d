"""What is refused as a quantity, a range or a name, and the exact words; the goldens lie in `values/`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from rdma_fabric.intent.quantities import Duration, Percent, Size, Speed, Threshold
from rdma_fabric.inventory.ranges import check_node_name, expand, zip_ranges
from tests.support.golden import Golden


def _size() -> Iterable[object]:
    yield from (
        "150kb",
        "150Kb",
        "150K",
        "64kib",
        "3mb",
        "9bytes",
        "3QQ",
        1500,
        "1500",
        "150 KB",
        "-1KB",
        "+1KB",
    )
    yield from ("0.0005KB", "1025GiB", "9999999999999999KB", "1e3B", "KB", "", ".5KB", "0x10B", "1_000B")
    yield from (
        True,
        None,
        ["1KB"],
        {"KB": 1},
        float("nan"),
        float("inf"),
        "nan",
        "\u0661KB",
        "1KB\n",
        "x" * 90,
    )


def _duration() -> Iterable[object]:
    yield from (
        200,
        "200MS",
        "5m",
        "5min",
        "1h",
        "200msec",
        "200\u00b5s",
        "1.5us",
        "2592001s",
        "-1s",
        "1 s",
        False,
    )


def _percent() -> Iterable[object]:
    yield from (50, "50", 0.5, "101%", "0.00001%", "-5%", "50 %", "50%%", "half", None)


def _speed() -> Iterable[object]:
    yield from (
        400,
        "400",
        "400g",
        "400GB",
        "400Gbps",
        "400Gb/s",
        "400GE",
        "400000",
        "400000M",
        "0.4T",
        "1.6T",
    )
    yield from ("300G", 0, "0G", "fast", None, "-400G", "400GX")


def _threshold() -> Iterable[object]:
    yield from ("55.5%", "101%", "1cell", "250 cells", "250Cells", "12seg", "1.5cells", "1000000001cells")
    yield from (150000, "150kb", "cells", "-3cells", True)


def _ranges() -> Iterable[str]:
    yield from ("leaf[8-1]", "leaf[01-8]", "leaf[1-08]", "leaf[01-100]", "leaf[01,2]", "leaf[]", "leaf[1-]")
    yield from ("leaf[a-c]", "leaf[1-9:2]", "leaf[1..9]", "leaf[1,]", "leaf[1 - 9]", "leaf[1-2", "leaf1-2]")
    yield from ("leaf[1-[2-3]]", "leaf[[1-2]]", "leaf]1-2[", "leaf[1-3,2]", "a[1,11][1,11]", "x[1-100001]")
    yield from (
        "x[1-999999999]",
        "x[1-9999999999]",
        "x[1-400]y[1-400]",
        "",
        "-leaf",
        ".[1-2]",
        "_a",
        "leaf 1",
    )
    yield from (
        "l\u0435af[1-2]",
        "leaf1\n",
        "leaf\u202e1",
        "leaf;reload",
        "a,b",
        "x" * 65,
        "x" * 61 + "[1-1000]",
    )


CASES: dict[str, tuple[Callable[..., object], Iterable[object]]] = {
    "size": (Size.parse, _size()),
    "duration": (Duration.parse, _duration()),
    "percent": (Percent.parse, _percent()),
    "speed": (Speed.parse, _speed()),
    "threshold": (Threshold.parse, _threshold()),
    "ranges": (expand, _ranges()),
    "node_names": (check_node_name, ["a/../b", "a:b", "..", "", "gpu\u00b9"]),
}


def _refusal(reader: Callable[..., object], *values: object) -> str:
    with pytest.raises(ValueError) as caught:
        reader(*values)
    return f"{', '.join(map(ascii, values))}\n    {caught.value}\n"


@pytest.mark.parametrize("case", CASES)
def test_refused_values(case: str, golden: Golden) -> None:
    reader, values = CASES[case]
    text = "".join(_refusal(reader, value) for value in values)
    assert text
    golden.at("..", "errors", "values").text(f"{case}.txt", text)


def test_refused_pairs_of_ranges(golden: Golden) -> None:
    text = _refusal(zip_ranges, "gpu[01-32]", "eth0", "leaf01", "Ethernet[1-31]/1")
    text += _refusal(zip_ranges, "gpu[01-32]", "eth0", "leaf[1-]", "Ethernet[1-32]/1")
    golden.at("..", "errors", "values").text("zip.txt", text)
