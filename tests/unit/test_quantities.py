"""Quantities: what is read, what is refused and with which words, and that text and value round-trip."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from rdma_fabric.intent.quantities import AnyPercent, Duration, Percent, Size, Speed, Threshold

steady = settings(derandomize=True, deadline=None)

QUANTITIES = (Size, Duration, Percent, Speed, Threshold)


@pytest.mark.parametrize(
    ("text", "value"),
    [("150KB", 150_000), ("64KiB", 65_536), ("3MB", 3_000_000), ("2MiB", 2_097_152), ("1500B", 1500),
     ("1.5MB", 1_500_000), ("1GB", 10**9), ("1GiB", 2**30), (0, 0), ("0", 0), ("0B", 0), ("1024GiB", 2**40)],
)  # fmt: skip
def test_size_reads(text: object, value: int) -> None:
    assert Size.parse(text) == Size(value)


def test_other_quantities_read() -> None:
    assert Duration.parse("200ms").microseconds == 200_000
    assert Duration.parse("0.5ms") == Duration(500)
    assert (Duration(1500).milliseconds, Duration(1_500_000).seconds) == (1.5, 1.5)
    assert Percent.parse("7%").value == 7.0
    assert Percent.parse("0.5%").value == 0.5
    assert Percent.parse("150%", limit=200).value == 150.0
    assert Speed.parse("1600G").gbps == 1600
    assert Threshold.parse("55%") == Threshold(55, "percent")
    assert Threshold.parse("250cells") == Threshold(250, "cells")
    assert Threshold.parse("120segments") == Threshold(120, "segments")
    assert Threshold.parse("150KB") == Threshold(150_000, "bytes")
    assert Threshold.parse(0) == Threshold(0, "bytes")


@pytest.mark.parametrize(
    ("value", "text"),
    [(Size(0), "0B"), (Size(1500), "1500B"), (Size(150_000), "150KB"), (Size(65_536), "64KiB"),
     (Size(1_024_000), "1024KB"), (Size(2**40), "1024GiB"),
     (Duration(200_000), "200ms"), (Duration(0), "0s"),
     (Duration(3_000_000), "3s"), (Percent(50.0), "50%"), (Percent(0.5), "0.5%"), (Percent(0.0), "0%"),
     (Percent(100.0), "100%"), (Speed(400), "400G"), (Threshold(65_536, "bytes"), "64KiB"),
     (Threshold(7, "percent"), "7%"), (Threshold(250, "cells"), "250cells")],
)  # fmt: skip
def test_text_is_the_shortest(value: object, text: str) -> None:
    assert str(value) == text


amounts = st.one_of(
    st.builds(Size, st.integers(0, Size.LIMIT)),
    st.builds(Duration, st.integers(0, Duration.LIMIT)),
    st.builds(lambda n: Percent(n / 10_000), st.integers(0, 1_000_000)),
    st.builds(Speed, st.sampled_from(Speed.ALL)),
    st.builds(Threshold, st.integers(0, 100), st.sampled_from(["percent", "cells", "segments", "bytes"])),
)


@steady
@given(amounts)
def test_text_and_value_round_trip(value: Any) -> None:
    assert type(value).parse(str(value)) == value
    assert re.search(type(value)._PATTERN, str(value))


@steady
@given(st.sampled_from(QUANTITIES), st.one_of(st.text(max_size=8), st.floats(), st.integers(), st.none()))
def test_no_input_breaks_the_parser(cls: Any, value: object) -> None:
    try:
        parsed = cls.parse(value)
    except ValueError as error:
        assert all(c.isprintable() for c in str(error))
    else:
        assert cls.parse(str(parsed)) == parsed


@steady
@given(
    st.sampled_from(QUANTITIES),
    st.from_regex(r"[0-9]{1,3}(\.[0-9])?[KMGTiBbusm%a-zA-Z]{0,5}", fullmatch=True),
)
def test_schema_pattern_takes_all_that_the_parser_takes(cls: Any, text: str) -> None:
    try:
        cls.parse(text)
    except ValueError:
        return
    assert re.search(cls._PATTERN, text) or text.strip("0.") == ""


class Wish(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    kmin: Threshold
    detect: Duration = Duration(200_000)
    bandwidth: Percent | None = None
    oversubscription: AnyPercent | None = None
    by_speed: dict[Speed, Size] = {}


def test_pydantic_reads_and_writes_text() -> None:
    wish = Wish.model_validate(
        {"kmin": "150KB", "bandwidth": "50%", "oversubscription": "300%", "by_speed": {"400G": "64KiB"}}
    )
    assert wish.kmin == Threshold(150_000, "bytes")
    assert wish.by_speed == {Speed(400): Size(65_536)}
    assert wish.oversubscription == Percent(300.0)
    assert wish.model_dump(mode="json") == {
        "kmin": "150KB",
        "detect": "200ms",
        "bandwidth": "50%",
        "oversubscription": "300%",
        "by_speed": {"400G": "64KiB"},
    }
    assert Wish.model_validate({"kmin": wish.kmin}).kmin is wish.kmin


def test_pydantic_error_is_ours() -> None:
    with pytest.raises(ValidationError) as caught:
        Wish.model_validate({"kmin": "150kb", "bandwidth": "300%"})
    texts = [str(error["ctx"]["error"]) for error in caught.value.errors()]
    assert texts == [
        "'150kb' has the unknown unit 'kb'; did you mean KB (1000) or KiB (1024)?",
        "300% is more than 100%; use a share between 0% and 100%",
    ]


@pytest.mark.parametrize("cls", QUANTITIES)
def test_json_schema_has_pattern_and_true_examples(cls: Any) -> None:
    schema = TypeAdapter(cls).json_schema()
    text = schema["anyOf"][0] if "anyOf" in schema else schema
    assert text["type"] == "string"
    for example in schema["examples"]:
        assert re.search(text["pattern"], example)
        cls.parse(example)


def test_model_json_schema_holds_the_quantities() -> None:
    schema = Wish.model_json_schema()
    assert schema["properties"]["kmin"]["anyOf"][0]["pattern"] == Threshold._PATTERN
    assert list(schema["properties"]["by_speed"]["patternProperties"]) == [Speed._PATTERN]
