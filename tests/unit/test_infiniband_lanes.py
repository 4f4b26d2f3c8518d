"""Weights of virtual lanes: no class is left out of the table that a port really has."""

from __future__ import annotations

import pytest

from rdma_fabric.intent.models import Wishes
from rdma_fabric.inventory.subnets import arbitration

TABLE = 8
"""Entries of a port's table (smpquery vlarb: LowCap 8)."""


def _tables(*classes: dict[str, object]) -> tuple[tuple[str, ...], dict[int, int], int]:
    """(high table, lane -> its weight in the low one, entries of the low one)."""
    named = {f"c{sl}": {"priority": sl, "sl": sl, **one} for sl, one in enumerate(classes)}
    high, low = arbitration(Wishes.model_validate({"classes": named}))
    assert isinstance(high, tuple) and isinstance(low, tuple)
    found: dict[int, int] = {}
    for row in low:
        lane, _, weight = row.partition(":")
        assert int(weight) <= 255
        found[int(lane)] = found.get(int(lane), 0) + int(weight)
    return high, found, len(low)


def _percent(*shares: float) -> list[dict[str, object]]:
    return [{"bandwidth": f"{share}%"} for share in shares]


@pytest.mark.parametrize(
    "shares", [(99, 1), (1, 99), (97, 3), (100, 0), (90, 5, 5), (60, 30, 9, 1), (0.5, 99.5), (93, *(1,) * 7)]
)
def test_every_lane_has_room_in_the_table(shares: tuple[float, ...]) -> None:
    _, low, entries = _tables(*_percent(*shares))
    assert set(low) == set(range(len(shares))) and entries <= TABLE
    order = sorted(range(len(shares)), key=lambda lane: shares[lane])
    assert [low[lane] for lane in order] == sorted(low.values())


def test_strict_lanes_have_room_too() -> None:
    high, low, entries = _tables(*_percent(99, 1), {"scheduler": "strict"})
    assert high == ("2:64",) and set(low) == {0, 1, 2} and entries <= TABLE


def test_shares_that_fit_are_exact() -> None:
    assert _tables(*_percent(40, 60))[1] == {0: 128, 1: 192}
    assert _tables(*_percent(50, 30, 20))[1] == {0: 320, 1: 192, 2: 128}


def test_classes_on_one_lane_share_it() -> None:
    three = [one | {"vl": vl} for one, vl in zip(_percent(40, 40, 20), (0, 1, 1), strict=True)]
    assert _tables(*three)[1] == {0: 128, 1: 192}


def test_weights_count() -> None:
    assert _tables({"weight": 40}, {"weight": 200})[1] == {0: 64, 1: 320}


def test_a_class_without_bandwidth_has_what_is_left() -> None:
    assert _tables({"bandwidth": "90%"}, {})[1] == {0: 576, 1: 64}
    assert _tables({"bandwidth": "40%"}, {"weight": 2}, {"weight": 1})[1] == {0: 128, 1: 128, 2: 64}
    assert _tables({}, {})[1] == {0: 64, 1: 64}
