"""Versions as numbers, and the ASIC behind a model's name."""

from __future__ import annotations

import pytest

from rdma_fabric.hardware import Hardware, PortHardware, asic_of, asics, release


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("4.32.1F", (4, 32, 1)),
        ("202411", (202411,)),
        ("SONiC.202411.1", (202411, 1)),
        ("5.14", (5, 14)),
        ("", ()),
        ("unknown", ()),
        ("24.2R1-S2", (24, 2)),
    ],
)
def test_release(version: str, numbers: tuple[int, ...]) -> None:
    assert release(version) == numbers


def test_releases_compare() -> None:
    assert release("4.9") < release("4.32.1F") < release("master")


@pytest.mark.parametrize(
    ("model", "asic"),
    [
        ("DCS-7060X6-64PE", "Tomahawk 5"),
        ("ACS-SN5600", "Spectrum-4"),
        ("SN5600", "Spectrum-4"),
        ("", ""),
        ("a box that nobody knows", ""),
    ],
)
def test_asic_of_a_model(model: str, asic: str) -> None:
    found = asic_of(model)
    assert bool(found) == bool(asic)
    if found:
        assert asic.replace(" ", "").lower() in found.name.replace(" ", "").lower()


def test_the_table_is_whole() -> None:
    assert len(asics()) > 10
    for row in asics():
        assert row.name
        assert row.source or not row.buffer_bytes
        assert row.cell_bytes >= 0


def test_ports_and_options_by_name() -> None:
    hw = Hardware(("b",), ports=(PortHardware("e1"), PortHardware("e2")), options=(("stack", "ofed"),))
    assert hw.base == "b"
    assert hw.port("e2") == PortHardware("e2")
    assert hw.port("e3") is None
    assert (hw.option("stack"), hw.option("none", "x")) == ("ofed", "x")
