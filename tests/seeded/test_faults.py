"""Every seeded fault is found: the right place, the right setting, and nobody else is named."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from rdma_fabric.state import Observation
from tests.seeded import catalogue, devices
from tests.seeded.catalogue import Variant
from tests.seeded.conftest import RECALL
from tests.seeded.faults import KINDS, Expect, Kind, NoPlace
from tests.seeded.judge import Base, complaints, verdict

pytestmark = pytest.mark.slow

Bases = dict[str, Base]
Record = Callable[[str, object], None]
NAMES = tuple(catalogue.bases())
SINGLES: dict[str, list[Variant]] = {kind.name: [] for kind in KINDS}
PAIRS: list[Variant] = []
for _variant in catalogue.variants(NAMES):
    if len(_variant.kinds) == 1:
        SINGLES[_variant.kinds[0].name].append(_variant)
    else:
        PAIRS.append(_variant)
CHUNK = 40
SWITCHES = {"arista_eos": ("leaf01", "spine01"), "sonic": ("leaf02", "leaf04"), "cumulus": ("leaf03",)}
"""Switches of the base `mixed`."""


def _run(variants: Iterable[Variant], bases: Bases) -> tuple[int, int, list[str]]:
    """(found, variants, what was wrong)."""
    found = count = 0
    wrong: list[str] = []
    for variant in variants:
        try:
            report, expected = bases[variant.base].report(variant)
        except NoPlace:
            continue
        count += 1
        troubles = complaints(report, expected)
        wrong += [f"{variant.name}: {one}" for one in troubles]
        found += not troubles
    return found, count, wrong


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.replace(" ", "-"))
def test_a_fault_is_found(kind: Kind, bases: Bases, record_property: Record) -> None:
    found, count, wrong = _run(SINGLES[kind.name], bases)
    record_property(RECALL, (f"{kind.where}: {kind.name}", found, count))
    assert wrong == []
    assert count == catalogue.SINGLE


@pytest.mark.parametrize("start", range(0, len(PAIRS), CHUNK))
def test_two_faults_at_once_are_both_found(start: int, bases: Bases, record_property: Record) -> None:
    found, count, wrong = _run(PAIRS[start : start + CHUNK], bases)
    record_property(RECALL, ("two at once", found, count))
    assert wrong == []
    assert count > CHUNK // 2


# ---------------------------------------------------------------- device text


@pytest.fixture(scope="module")
def switches(bases: Bases) -> dict[str, devices.Switch]:
    """Simulated switches that were brought to the intent."""
    resolved = bases["mixed"].resolved
    return {name: devices.switch(resolved, name) for names in SWITCHES.values() for name in names}


def test_sound_devices_are_sound(bases: Bases, switches: dict[str, devices.Switch]) -> None:
    base = bases["mixed"]
    seen = base.seen | {name: one.observe() for name, one in switches.items()}
    report = verdict(base.resolved, seen)
    assert complaints(report, []) == []
    assert report.not_judged == ()


def _typed(base: Base, switch: devices.Switch, typed: devices.Typed, port: str) -> tuple[Observation, Expect]:
    said, seen = switch.after(tuple(line.format(port=port) for line in typed.lines))
    assert "%" not in said and "Invalid" not in said, said
    place = switch.name if typed.whole else f"{switch.name} {port}"
    return seen, Expect(frozenset([place]), typed.settings)


@pytest.mark.parametrize(
    ("platform", "typed"),
    [(platform, one) for platform, rows in devices.TYPED.items() for one in rows],
    ids=lambda value: getattr(value, "kind", value),
)
def test_what_was_typed_on_a_switch_is_found(
    platform: str,
    typed: devices.Typed,
    bases: Bases,
    switches: dict[str, devices.Switch],
    record_property: Record,
) -> None:
    base, wrong, count, bad = bases["mixed"], [], 0, 0
    for name in SWITCHES[platform]:
        ports = list(base.fabric.peers(name))
        for port in ports[:1] if typed.whole else (ports[1], ports[-1]):
            seen, expect = _typed(base, switches[name], typed, port)
            troubles = complaints(verdict(base.resolved, base.seen | {name: seen}), [expect])
            wrong += [f"{name} {port}: {one}" for one in troubles]
            count, bad = count + 1, bad + bool(troubles)
    record_property(RECALL, (f"device text: {platform} {typed.kind}", count - bad, count))
    assert wrong == []


def test_what_was_typed_on_two_switches_is_found(
    bases: Bases, switches: dict[str, devices.Switch], record_property: Record
) -> None:
    base, wrong, count, bad = bases["mixed"], [], 0, 0
    rows = zip(devices.TYPED["arista_eos"], itertools.cycle(devices.TYPED["sonic"]), strict=False)
    for index, (one, other) in enumerate(rows):
        ports = [list(base.fabric.peers(name))[index % 6] for name in ("leaf01", "leaf02")]
        first, expect = _typed(base, switches["leaf01"], one, ports[0])
        second, more = _typed(base, switches["leaf02"], other, ports[1])
        seen = base.seen | {"leaf01": first, "leaf02": second}
        troubles = complaints(verdict(base.resolved, seen), [expect, more])
        wrong += [f"{one.kind} + {other.kind}: {text}" for text in troubles]
        count, bad = count + 1, bad + bool(troubles)
    record_property(RECALL, ("device text: two at once", count - bad, count))
    assert wrong == []


def test_a_sound_host_is_sound(bases: Bases) -> None:
    base = bases["nccl"]
    seen = {name: devices.host(base.resolved.plans[name].hardware) for name in base.fabric.hosts()}
    report = verdict(base.resolved, base.seen | seen)
    assert complaints(report, []) == []
    assert report.not_judged == ()


@pytest.mark.parametrize("tos", [104, 105, 107])
def test_ecn_bits_of_a_tos_byte_do_not_matter(tos: int, bases: Bases) -> None:
    base = bases["nccl"]
    edit = devices.Edit("ecn bits", "nic", "@@tos {port}\n106", f"@@tos {{port}}\n{tos}", ())
    seen = devices.host(base.resolved.plans["gpu01"].hardware, edit, "eth1")
    assert complaints(verdict(base.resolved, base.seen | {"gpu01": seen}), []) == []


@pytest.mark.parametrize("edit", devices.EDITS, ids=lambda edit: edit.kind)
def test_what_a_host_shows_otherwise_is_found(
    edit: devices.Edit, bases: Bases, record_property: Record
) -> None:
    base, wrong, count, bad = bases["nccl"], [], 0, 0
    for name, port in (("gpu01", "eth1"), ("gpu05", "eth3"), ("gpu08", "eth0")):
        seen = devices.host(base.resolved.plans[name].hardware, edit, port)
        place = name if edit.part == "system" else f"{name} {port}"
        expect = Expect(frozenset([place]), edit.settings, edit.severity)
        troubles = complaints(verdict(base.resolved, base.seen | {name: seen}), [expect])
        wrong += [f"{name} {port}: {one}" for one in troubles]
        count, bad = count + 1, bad + bool(troubles)
    record_property(RECALL, (f"device text: host {edit.kind}", count - bad, count))
    assert wrong == []


# ---------------------------------------------------------------- the generator


def test_there_are_enough_kinds_and_variants() -> None:
    assert len(KINDS) >= 150
    assert sum(map(len, SINGLES.values())) + len(PAIRS) >= 1000
    assert len({kind.name for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("name", ["fabrics", "faults", "subnets", "subnet_faults", "catalogue"])
def test_generators_know_nothing_of_the_checker(name: str) -> None:
    tree = ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    assert not any(one.startswith("rdma_fabric") for one in imported)
