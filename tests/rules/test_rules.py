"""Every rule: its cases, its documentation, and proof that nothing else reports its case when it is gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rdma_fabric.checker import registry
from rdma_fabric.checker.scopes import AnyRule
from rdma_fabric.findings import INPUT_CODES, Severity
from tests.rules import harness
from tests.rules.harness import Case

CASES = tuple(harness.cases())
HEADINGS = ("What it checks", "Why it breaks RDMA", "Wrong", "Right", "When to waive it")
RULES = registry.documented()


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sound")


def test_the_sound_fabric_has_notes_only(tmp_path: Path) -> None:
    found = harness.report({}, tmp_path)
    assert [one for one in found.findings if one.severity > Severity.NOTE] == []
    assert found.rejected == ()
    assert found.not_judged == ()


@pytest.mark.parametrize("case", [one for one in CASES if one.kind == "pass"], ids=lambda one: one.label)
def test_passes(case: Case, tmp_path: Path, sound: Path) -> None:
    found = harness.news(harness.report(case.data, tmp_path), sound, case)
    loud = [one for one in found if one.severity > Severity.NOTE or one.code == case.file]
    assert [harness.row(one) for one in loud if not one.waived] == []


@pytest.mark.parametrize("case", [one for one in CASES if one.kind == "fail"], ids=lambda one: one.label)
def test_fails(case: Case, tmp_path: Path, sound: Path) -> None:
    found = harness.news(harness.report(case.data, tmp_path), sound, case)
    assert case.expect
    left = list(found)
    for wanted in case.expect:
        match = next((one for one in left if harness.agree(wanted, one)), None)
        assert match is not None, f"missing {wanted} in {[harness.row(one) for one in found]}"
        left.remove(match)
    assert [harness.row(one) for one in left] == []


def _alone(code: str) -> Case | None:
    """A case in which the rule is the only one that says anything."""
    return next(
        (one for one in CASES if one.file == code and [e["code"] for e in one.expect] == [code]), None
    )


@pytest.mark.parametrize("rule", registry.rules(), ids=lambda rule: rule.code)
def test_a_deleted_rule_is_missed(
    rule: AnyRule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sound: Path
) -> None:
    case = _alone(rule.code)
    assert case is not None, f"{rule.code} has no case in which it is the only finding"
    kept = tuple(one for one in registry.rules() if one is not rule)
    monkeypatch.setattr(registry, "rules", lambda: kept)
    found = harness.news(harness.report(case.data, tmp_path), sound, case)
    wanted = {key: value for key, value in case.expect[0].items() if key in ("code", "found", "wanted")}
    assert not any(harness.agree(wanted, one) for one in found)


def test_case_files_are_the_rules() -> None:
    assert {path.stem for path in harness.HERE.glob("FAB*.yaml")} == {one.code for one in registry.rules()}


def test_codes_and_names_are_unique_and_apart_from_input_codes() -> None:
    codes = [one.code for one in registry.rules()]
    names = [one.name for one in registry.rules()]
    assert len(set(codes)) == len(codes)
    assert len(set(names)) == len(names)
    assert not set(codes) & set(INPUT_CODES.values())
    assert not set(names) & set(INPUT_CODES)
    assert all(re.fullmatch(r"FAB\d{3}", code) for code in codes)
    assert all(re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", name) for name in names)


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.rule.code)
def test_documentation_has_its_headings(one: registry.Documented) -> None:
    lines = one.doc.strip().splitlines()
    assert lines[0].endswith(".")
    heads = tuple(line for line in lines[1:] if line and not line.startswith(" "))
    assert heads == HEADINGS
    parts = re.split(rf"^(?:{'|'.join(HEADINGS)})$", one.doc, flags=re.MULTILINE)
    assert all(part.strip() for part in parts)
    assert "Source:" in parts[2]


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.rule.code)
def test_file_is_named_after_the_rule(one: registry.Documented) -> None:
    name = f"{one.rule.code.lower()}_{one.rule.name.replace('-', '_')}"
    assert (Path(registry.__file__).parent / "rules" / f"{name}.py").is_file()


def test_a_rule_is_found_by_code_and_by_name() -> None:
    for one in registry.rules():
        for word in (one.code, one.code.lower(), one.name):
            found = registry.find(word)
            assert found is not None and found.rule is one
    assert registry.find("no-such-rule") is None
