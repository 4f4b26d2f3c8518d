"""Headroom that vendors ship, judged by our rule: what it rejects, how far our numbers are from theirs."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import pytest

from rdma_fabric.checker import registry
from rdma_fabric.checker.rules._buffers import least_headroom, usual_headroom
from rdma_fabric.checker.scopes import PortRule, PortView
from rdma_fabric.findings import Severity
from rdma_fabric.hardware import PortHardware, asic_of
from rdma_fabric.intent.models import Wishes
from rdma_fabric.state import Amount, ClassState, PortSettings, QosState
from tests.seeded.conftest import HEADROOM

FAMILIES = (
    # Words of a platform or SKU whose model the ASIC table does not spell that way.
    ("sn27|msn27|sn2201", "Spectrum"),
    ("sn3[478]|msn3[478]", "Spectrum-2"),
    ("sn4[2678]|msn4[2678]", "Spectrum-3"),
    ("sn56(00|10)|sn54", "Spectrum-4"),
    ("sn5640", "Spectrum-5"),
    ("sn6[68]", "Spectrum-6"),
    ("dbmvtx9180|d64p512t", "Teralynx 10"),
    ("wistron|t7132s|midstone|et-c032", "Teralynx 7"),
    ("centec|es6220|n3248|s3248|e3224|netberg|arista_7170|fs_s5800", "placeholder tables"),
    ("7060x6|w6940|nexthop_4010|h5_64|z9864|s9321", "Tomahawk5"),
    ("nexthop_4210|h6_128|h6_64", "Tomahawk6"),
    ("7280|7800|x3b|x4|36x400|5010|ixr7250", "Jericho and Qumran"),
)
# buffers.md 2: with M = 9216, M_ll = 4192 and no reaction time 30 rows are below, all of 250 m or more.
WRONG = 30
WRONG_FROM_M = 250


@dataclass(frozen=True)
class Shipped:
    """One row of a vendor's table."""

    family: str
    sku: str
    gbps: int
    metres: int
    xoff: int


@pytest.fixture(scope="module")
def shipped(shared: Path) -> list[Shipped]:
    """All rows."""
    with (shared / "data" / "sonic" / "headroom_tables.csv").open(encoding="utf-8") as file:
        return list(_rows(csv.DictReader(file)))


def _rows(reader: csv.DictReader[str]) -> Iterator[Shipped]:
    for row in reader:
        name = f"{row['vendor']} {row['platform']} {row['hwsku']}".lower()
        metres = int(row["cable"].removesuffix("m"))
        yield Shipped(
            _family(name, row), row["hwsku"], int(row["speed_mbps"]) // 1000, metres, int(row["xoff_bytes"])
        )


def _family(name: str, row: dict[str, str]) -> str:
    for words, family in FAMILIES:
        if re.search(words, name):
            return family
    asic = asic_of(row["hwsku"]) or asic_of(row["platform"])
    return asic.name if asic else "others"


def _judge(row: Shipped) -> Severity | None:
    """What the rule says of a switch port with this headroom by hand."""
    rule = next(one for one in registry.rules() if one.name == "headroom-too-small")
    assert isinstance(rule, PortRule)
    classes = tuple(ClassState(headroom=Amount(row.xoff)) if p == 3 else ClassState() for p in range(8))
    settings = PortSettings(qos=QosState(classes=classes))
    hits = list(rule.check(replace(_PORT, state=settings, wanted=settings, hw=_hardware(row))))
    return max((hit.severity or rule.severity for hit in hits), default=None)


def _hardware(row: Shipped) -> PortHardware:
    return PortHardware("Ethernet0", speed_gbps=row.gbps, cable_m=row.metres)


_PORT = PortView(
    state=PortSettings(),
    assumed=PortSettings(),
    wanted=PortSettings(),
    wishes=Wishes(),
    hw=PortHardware("Ethernet0"),
    base="sonic",
    is_host=False,
    network="compute",
    observed=False,
    speed_gbps=0,
    need_mtu=4192,
    rdma_mtu=4096,
)


def test_only_what_is_known_to_be_wrong_is_rejected(
    shipped: list[Shipped], record_property: Callable[[str, object], None]
) -> None:
    verdicts = [(row, _judge(row)) for row in shipped]
    rejected = [row for row, verdict in verdicts if verdict is Severity.ERROR]
    for family in sorted({row.family for row in shipped}):
        rows = [(row, verdict) for row, verdict in verdicts if row.family == family]
        ratios = [usual_headroom(row.gbps, row.metres) / row.xoff for row, _ in rows if row.xoff]
        bad, low = (sum(1 for _, one in rows if one is level) for level in (Severity.ERROR, Severity.WARNING))
        record_property(HEADROOM, (family, len(rows), bad, low, min(ratios), median(ratios), max(ratios)))
    assert len(shipped) >= 2446
    assert len(rejected) == WRONG
    assert min(row.metres for row in rejected) >= WRONG_FROM_M


def test_the_least_is_below_what_any_device_needs(shipped: list[Shipped]) -> None:
    """The bound of an error knows no reaction time; up to 40 m nobody ships less."""
    near = [row for row in shipped if row.metres <= 40]
    assert all(row.xoff >= least_headroom(row.gbps, row.metres) for row in near)
    assert all(least_headroom(row.gbps, row.metres) < usual_headroom(row.gbps, row.metres) for row in shipped)
