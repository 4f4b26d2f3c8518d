"""Published ECN thresholds: a name and a speed give one ramp, or none."""

from __future__ import annotations

import pytest

from rdma_fabric.thresholds import find, names, published


def test_every_name_finds_its_ramp_and_no_row_is_without_a_name() -> None:
    found = {find(name, speed) for name in names() for speed in (0, 10, 25, 40, 50, 100, 200, 400, 800)}
    assert found - {None} == set(published())


def test_rows_are_whole() -> None:
    for row in published():
        assert 0 < row.kmin <= row.kmax
        assert 0 < row.pmax <= 100
        assert row.url


@pytest.mark.parametrize(
    ("name", "speed", "ramp"),
    [
        ("HPCC paper simulator (SIGCOMM 2019)", 100, (400_000, 1_600_000, 20.0)),
        ("HPCC paper simulator (SIGCOMM 2019)", 400, (1_600_000, 6_400_000, 20.0)),
        ("HPCC paper simulator (SIGCOMM 2019)", 800, None),
        ("Cisco AI/ML blueprint values", 400, (150_000, 3_000_000, 7.0)),
        ("Cisco AI/ML blueprint values", 200, None),
        ("Microsoft Azure Local reference (Cisco NX-OS)", 40, (300_000, 300_000, 100.0)),
        ("NVIDIA Cumulus Linux roce default", 400, (150_000, 1_500_000, 100.0)),
        ("SONiC per-SKU qos template; Tomahawk2", 100, (2_000_000, 10_000_000, 5.0)),
        ("Huawei AI Fabric static ECN; 100GE; CloudEngine 16800", 100, (7_000, 18_000_000, 100.0)),
        # Several rows fit, or the row is no size of its own, or its pmax is not known.
        ("SONiC per-SKU qos template", 100, None),
        ("SONiC per-SKU qos template; Trident3", 100, None),
        ("Huawei AI Fabric static ECN", 100, None),
        ("Huawei AI Fabric static ECN", 400, None),
        ("HPCC paper simulator (DCTCP mode)", 100, None),
        ("HPCC", 100, None),
        ("", 100, None),
    ],
)
def test_find(name: str, speed: int, ramp: tuple[int, int, float] | None) -> None:
    row = find(name, speed)
    assert (None if row is None else (row.kmin, row.kmax, row.pmax)) == ramp
