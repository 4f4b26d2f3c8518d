"""A rule that could be deleted without a seeded fault being missed is not a rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rdma_fabric.checker import registry
from rdma_fabric.checker.scopes import AnyRule
from tests.seeded import catalogue
from tests.seeded.catalogue import Variant
from tests.seeded.faults import NoPlace
from tests.seeded.judge import Base, complaints

pytestmark = pytest.mark.slow

Bases = dict[str, Base]


def _compact() -> Iterator[Variant]:
    """Two variants of every kind."""
    for variant in catalogue.variants(tuple(catalogue.bases())):
        if len(variant.kinds) == 1 and variant.seed < 2:
            yield variant


@pytest.fixture(scope="module")
def by_code(bases: Bases) -> dict[str, list[Variant]]:
    """Code -> variants in whose report it occurs."""
    found: dict[str, list[Variant]] = {}
    for variant in _compact():
        try:
            report, expected = bases[variant.base].report(variant)
        except NoPlace:
            continue
        assert complaints(report, expected) == []
        for code in dict.fromkeys(one.code for one in report.findings):
            found.setdefault(code, []).append(variant)
    return found


@pytest.mark.parametrize("rule", registry.rules(), ids=lambda rule: rule.code)
def test_without_the_rule_a_fault_is_missed(
    rule: AnyRule, bases: Bases, by_code: dict[str, list[Variant]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tuple(one for one in registry.rules() if one is not rule)
    monkeypatch.setattr(registry, "rules", lambda: kept)
    missed = False
    for variant in by_code.get(rule.code, []):
        report, expected = bases[variant.base].report(variant)
        missed = missed or bool(complaints(report, expected))
        if missed:
            break
    assert missed, f"no seeded fault misses {rule.code} {rule.name}"
