"""Sound fabrics of many shapes: no errors, and no warning that is not listed here with its reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rdma_fabric.cli.common import load
from rdma_fabric.findings import Finding, Severity
from tests.seeded import fabrics, subnets
from tests.seeded.fabrics import COUNT, SHAPES, VENDORS, WISHES, Fabric
from tests.seeded.judge import loud, sound, verdict

pytestmark = pytest.mark.slow

CHUNK = 20

ALLOWED: dict[tuple[str, str], str] = {
    ("FAB040", "the inbox driver cannot switch DCQCN per priority"): (
        "dcqcn: false on hosts with the inbox driver: the NIC's firmware has DCQCN on and the driver has no "
        "switch. The wish is dropped on a real device too, and its owner must know."
    ),
    ("FAB040", "only MTU, RDMA-CM marking and modules of this NIC are managed"): (
        "A generic NIC in a network with a lossless class: its PFC is somebody else's work, which nobody "
        "checks. That is worth a warning until its driver is a platform."
    ),
    ("FAB040", "PFC of an mlx5 port is on or off for both directions"): (
        "receive-only PFC on mlx5 hosts: the NIC sends pauses as well. The wish cannot be met."
    ),
    ("FAB040", "the NIC takes the tag's value as the priority"): (
        "trust: pcp with classes that do not use all eight values: the NIC's 802.1p map is fixed, so that "
        "frames of other values get priorities of their own instead of the default class."
    ),
}
"""(code, start of the reason) -> why a sound fabric has this warning."""


def _explained(one: Finding) -> bool:
    return any(one.code == code and one.reason.startswith(start) for code, start in ALLOWED)


def _is_sound(fabric: Fabric, folder: Path) -> None:
    resolved = load(fabric.write(folder))
    for seen in ({}, sound(resolved)):
        report = verdict(resolved, seen)
        found = loud(report)
        assert [one for one in found if one.severity is Severity.ERROR] == [], fabric.name
        assert [one for one in found if not _explained(one)] == [], fabric.name
        assert report.rejected == (), fabric.name
        assert report.not_judged == (), fabric.name


@pytest.mark.parametrize("start", range(0, COUNT, CHUNK))
def test_a_sound_fabric_is_sound(start: int, tmp_path: Path) -> None:
    for number in range(start, start + CHUNK):
        _is_sound(fabrics.make(number), tmp_path)


@pytest.mark.parametrize("start", range(0, subnets.COUNT, CHUNK))
def test_a_sound_fabric_with_infiniband_is_sound(start: int, tmp_path: Path) -> None:
    for number in range(start, min(start + CHUNK, subnets.COUNT)):
        _is_sound(subnets.make(number), tmp_path)


def test_every_listed_warning_is_needed(tmp_path: Path) -> None:
    used: Counter[tuple[str, str]] = Counter()
    for fabric in fabrics.every():
        if {"no-dcqcn", "pcp", "receive-only", "generic"} & set(fabric.traits):
            for one in loud(verdict(load(fabric.write(tmp_path)))):
                used.update(key for key in ALLOWED if one.code == key[0] and one.reason.startswith(key[1]))
    assert set(used) == set(ALLOWED)


def test_all_shapes_intents_and_vendors_occur() -> None:
    traits = {trait for fabric in fabrics.every() for trait in fabric.traits}
    assert {*SHAPES, *WISHES, *VENDORS} <= traits
    texts = ["".join(fabric.files().values()) for fabric in fabrics.every()]
    for word in ("waivers:", "kind: svi", "state: retired", "2001:db8::", "topology:", "[01-"):
        assert any(word in text for text in texts), word
    traits = {trait for fabric in subnets.every() for trait in fabric.traits}
    assert {*subnets.PODS, *subnets.SUBNETS, *VENDORS, "beside"} <= traits
    assert COUNT >= 200
    files = {tuple(sorted(fabric.files().items())) for fabric in fabrics.every()}
    assert len(files) == COUNT


def test_a_fabric_follows_from_its_number() -> None:
    assert fabrics.make(17).files() == fabrics.make(17).files()
