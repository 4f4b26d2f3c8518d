"""Headroom that vendors ship, judged by our rule: what it rejects, how far our numbers are from theirs.

The rows are those of SONiC's device folders. `make golden` writes the package's table of the smallest shipped
values (data/headroom.csv) and the page of the comparison (docs/headroom.md) anew.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from rdma_fabric.checker import registry
from rdma_fabric.checker.headroom import shipped as table
from rdma_fabric.checker.headroom import shipped_headroom
from rdma_fabric.checker.rules._buffers import least_headroom, usual_headroom
from rdma_fabric.checker.scopes import NodeRule, NodeView
from rdma_fabric.findings import Severity
from rdma_fabric.hardware import Asic, Hardware, PortHardware, asic_of, asics
from rdma_fabric.intent.models import Wishes
from rdma_fabric.state import Amount, ClassState, NodeState, PortSettings, PortState, QosState
from tests.seeded.conftest import HEADROOM
from tests.support.golden import Golden

PLACEHOLDER = "placeholder tables"
"""Copied or made for another chip (buffers.md 3): no reference for anybody."""
FAMILIES = (
    # Words of a platform or SKU whose model the ASIC table does not spell that way.
    ("centec|es6220|n3248|s3248|e3224|netberg|arista_7170|fs_s5800|aurora-[67]", PLACEHOLDER),
    ("barefoot", PLACEHOLDER),
    ("ixr7220-h4-32d|ixr7220-h5-64|ixr7220-h6-64|common th4/", PLACEHOLDER),
    ("sn27|msn27|sn2201", "Spectrum"),
    ("sn3[478]|msn3[478]", "Spectrum-2"),
    ("sn4[2678]|msn4[2678]", "Spectrum-3"),
    ("sn56(00|10)|sn54", "Spectrum-4"),
    ("sn5640", "Spectrum-5"),
    ("sn6[68]", "Spectrum-6"),
    ("dbmvtx9180|d64p512t", "Teralynx 10"),
    ("wistron|t7132s|midstone|et-c032", "Teralynx 7"),
    ("7060x6|w6940|nexthop_4010|h5_64|z9864|s9321", "Tomahawk5"),
    ("nexthop_4210|h6_128|h6_64", "Tomahawk6"),
    ("common.* td2/", "Trident2"),
    ("common.* th/", "Tomahawk"),
    ("common.* th2/|7260cx3", "Tomahawk2"),
)
# buffers.md 2: with M = 9216, M_ll = 4192 and no reaction time 30 rows are below, all of 250 m or more.
WRONG = 30
WRONG_FROM_M = 250
ASICS = {one.name: one for one in asics()}


@dataclass(frozen=True)
class Shipped:
    """One row of a vendor's table; `family` is the name of an ASIC, or a word for what has none."""

    family: str
    sku: str
    gbps: int
    metres: int
    xoff: int

    @property
    def asic(self) -> Asic | None:
        """The ASIC, where our table knows it."""
        return ASICS.get(self.family)


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
    return asic.name if asic else "unknown ASIC"


def _judge(row: Shipped) -> Severity | None:
    """What the rule says of a switch with this headroom by hand."""
    rule = next(one for one in registry.rules() if one.name == "headroom-too-small")
    assert isinstance(rule, NodeRule)
    classes = tuple(ClassState(headroom=Amount(row.xoff)) if p == 3 else ClassState() for p in range(8))
    settings = PortSettings(qos=QosState(classes=classes))
    port = PortHardware("Ethernet0", speed_gbps=row.gbps, cable_m=row.metres)
    state = NodeState(ports=(PortState("Ethernet0", settings=settings),))
    hits = list(rule.check(_view(state, Hardware(("sonic",), ports=(port,), asic=row.asic))))
    return max((hit.severity or rule.severity for hit in hits), default=None)


def _view(state: NodeState, hw: Hardware) -> NodeView:
    return NodeView(
        state=state,
        wanted=state,
        hw=hw,
        wishes=Wishes(),
        port_wishes={},
        faults=(),
        observed=False,
        is_host=False,
        asked=state,
        networks={},
        need_mtu={},
    )


def _least(rows: Iterable[Shipped]) -> str:
    """data/headroom.csv: per ASIC, speed and length the smallest row that is a headroom at all."""
    found: dict[tuple[str, int, int], list[int]] = {}
    for row in rows:
        if row.asic and row.xoff >= least_headroom(row.gbps, row.metres):
            found.setdefault((row.family, row.gbps, row.metres), []).append(row.xoff)
    lines = [f"{','.join(map(str, key))},{min(sizes)},{len(sizes)}" for key, sizes in sorted(found.items())]
    return "\n".join(["asic,speed_gbps,cable_m,xoff_bytes,skus", *lines]) + "\n"


def test_the_packages_table_is_the_least_that_is_shipped(shipped: list[Shipped], golden: Golden) -> None:
    golden.at("..", "..", "compiler", "rdma_fabric", "data").text("headroom.csv", _least(shipped))


def test_only_what_is_known_to_be_wrong_is_rejected(
    shipped: list[Shipped], record_property: Callable[[str, object], None]
) -> None:
    verdicts = [(row, _judge(row)) for row in shipped]
    rejected = [row for row, verdict in verdicts if verdict is Severity.ERROR]
    warned = [row for row, verdict in verdicts if verdict is Severity.WARNING]
    for family, rows in _by_family(verdicts):
        record_property(HEADROOM, (family, *_numbers(rows)))
    assert len(shipped) >= 2446
    assert len(rejected) == WRONG
    assert min(row.metres for row in rejected) >= WRONG_FROM_M
    # What a vendor ships for its own chip is no false alarm's business.
    assert warned == []


Verdicts = list[tuple[Shipped, Severity | None]]


def _by_family(verdicts: Verdicts) -> Iterator[tuple[str, Verdicts]]:
    for family in sorted({row.family for row, _ in verdicts}):
        yield family, [(row, verdict) for row, verdict in verdicts if row.family == family]


def _numbers(rows: Verdicts) -> tuple[int, int, int, float, float, float]:
    """(rows, rejected, warned, smallest, median and largest ratio of ours to theirs)."""
    ratios = [usual_headroom(row.gbps, row.metres) / row.xoff for row, _ in rows if row.xoff]
    bad, low = (sum(1 for _, one in rows if one is level) for level in (Severity.ERROR, Severity.WARNING))
    return len(rows), bad, low, min(ratios), median(ratios), max(ratios)


PAGE = """# Headroom: ours and what vendors ship

Rule [FAB042](rules/FAB042.md) against the {count} rows of the headroom tables in SONiC's device folders.
It rejects {bad} rows, all for cables of {metres} m and more, which hold less than two frames and what is on
the cable: no device can be lossless with them. It warns about no row: a value is warned about when it is
below the smallest that is shipped for its ASIC, speed and length. `ours / shipped` is our formula with
reaction time (IEEE 802.1Qbb annex N, without MAC delays and cells) to the shipped xoff; it bounds from
below, so that tables for chips with large cells are several times larger. Written by `make golden`.

| ASIC | rows | rejected | warned | ours / shipped: least | median | most |
|---|---|---|---|---|---|---|
{rows}

Rejected rows:

| ASIC | SKU | Gbit/s | m | shipped | least possible |
|---|---|---|---|---|---|
{wrong}

Placeholder tables are those of chips that ship numbers of another chip, or one table for all (Tofino, Centec,
Netberg, FS, some Nokia, the generic Tomahawk 4 profile): they are compared, and are no reference.
"""


def test_the_page_of_the_comparison(shipped: list[Shipped], golden: Golden) -> None:
    verdicts = [(row, _judge(row)) for row in shipped]
    wrong = [row for row, verdict in verdicts if verdict is Severity.ERROR]
    rows = []
    for family, found in _by_family(verdicts):
        count, bad, low, least, middle, most = _numbers(found)
        share = f"{bad} ({100 * bad / count:.0f}%)" if bad else "0"
        rows.append(f"| {family} | {count} | {share} | {low} | {least:.2f} | {middle:.2f} | {most:.2f} |")
    wrong_rows = [
        f"| {row.family} | {row.sku} | {row.gbps} | {row.metres} | {row.xoff} | "
        f"{least_headroom(row.gbps, row.metres)} |"
        for row in sorted(wrong, key=lambda one: (one.family, one.sku, one.gbps, one.metres))
    ]
    text = PAGE.format(
        count=len(shipped),
        bad=len(wrong),
        metres=min(row.metres for row in wrong),
        rows="\n".join(rows),
        wrong="\n".join(wrong_rows),
    )
    golden.at("..", "..", "docs").text("headroom.md", text)


def test_the_least_is_below_what_any_device_needs(shipped: list[Shipped]) -> None:
    """The bound of an error knows no reaction time; up to 40 m nobody ships less."""
    near = [row for row in shipped if row.metres <= 40]
    assert all(row.xoff >= least_headroom(row.gbps, row.metres) for row in near)
    assert all(least_headroom(row.gbps, row.metres) < usual_headroom(row.gbps, row.metres) for row in shipped)


def test_what_is_shipped_for_a_length_does_for_shorter_cables() -> None:
    for (name, gbps), rows in table().items():
        for metres, size in rows:
            for length in (1, metres // 2, metres - 1, metres):
                assert 0 < shipped_headroom(ASICS[name], gbps, length) <= size, (name, gbps, metres, length)


def test_an_unknown_asic_or_speed_has_no_shipped_bound() -> None:
    assert shipped_headroom(ASICS["Tomahawk"], 800, 5) == 0
    assert shipped_headroom(ASICS["Tofino"], 100, 5) == 0
