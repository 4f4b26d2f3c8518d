"""Findings as JUnit XML, for the test views of CI systems.

One suite per rule. A rule without findings is one passed case, so that the totals mean something; else
there is one case per node, since CI systems keep one failure per case and tell cases apart by name.
Errors fail (warnings too when they count), notes and warnings are passed cases with text, waived
findings are skipped cases with the waiver's end and reason. No time, no host name: equal input, equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree as Xml

from rdma_fabric.findings import Finding, natural
from rdma_fabric.views.verdict import Verdict, details, where

# Everything that XML 1.0 cannot hold (2.2 Characters).
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
PASSED = "all places"
"""Name of the case of a rule without findings."""


def report_junit(verdict: Verdict) -> str:
    """The whole verdict."""
    top = Xml.Element("testsuites", name=f"fabric {verdict.command}")
    by_rule: dict[str, list[Finding]] = {}
    for one in verdict.findings:
        by_rule.setdefault(one.code, []).append(one)
    names = {one.rule.code: one.rule.name for one in verdict.rules}
    names |= {one.code: one.name for one in verdict.checks}
    names = {one.code: one.name for one in verdict.findings if one.code not in names} | names
    for code, name in sorted(names.items()):
        top.append(_suite(f"{code} {name}", by_rule.get(code, ()), _unjudged(verdict, code), verdict))
    for key in ("tests", "failures", "errors"):
        top.set(key, str(sum(int(suite.get(key, "0")) for suite in top)))
    Xml.indent(top, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(top, encoding="unicode")


def _unjudged(verdict: Verdict, code: str) -> list[str]:
    return [
        f"not judged for {count} kind{'s' if count > 1 else ''} of place: {why}"
        for rule, why, count in verdict.not_judged
        if rule == code
    ]


def _suite(title: str, found: Iterable[Finding], unjudged: list[str], verdict: Verdict) -> Xml.Element:
    suite = Xml.Element("testsuite", name=_legal(title))
    for name, findings in sorted(_by_case(found, verdict).items(), key=lambda item: natural(item[0])):
        suite.append(_case(title, name, findings, verdict))
    for number, text in enumerate(unjudged, 1):
        case = _blank(title, f"not judged {number}")
        _add(case, "skipped", text)
        suite.append(case)
    if not len(suite):
        suite.append(_blank(title, PASSED))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(sum(1 for case in suite if case.find(tag) is not None)))
    suite.set("tests", str(len(suite)))
    return suite


def _by_case(found: Iterable[Finding], verdict: Verdict) -> dict[str, list[Finding]]:
    """Findings per case: a node, or what else the place says; an input file is the place of its faults."""
    cases: dict[str, list[Finding]] = {}
    for one in found:
        names = [place.node or where(place) for place in one.places]
        names = names or [verdict.source.at(one.position) or "the fabric"]
        for name in dict.fromkeys(names):
            cases.setdefault(name, []).append(one)
    return cases


def _blank(title: str, name: str) -> Xml.Element:
    return Xml.Element("testcase", classname=_legal(title), name=_legal(name), time="0")


def _case(title: str, name: str, found: list[Finding], verdict: Verdict) -> Xml.Element:
    """One case; the worst of its findings decides, all of them are told."""
    case = _blank(title, name)
    failing = [one for one in found if verdict.fails(one)]
    waived = [one for one in found if one.waived]
    rest = [one for one in found if one not in failing and one not in waived]
    if failing:
        tag = "failure" if verdict.loaded else "error"
        element = _add(case, tag, failing[0].message, _text([*failing, *waived, *rest], verdict))
        element.set("type", str(failing[0].severity))
    elif waived and not rest:
        _add(case, "skipped", f"waived {waived[0].waived}", _text(waived, verdict))
    else:
        Xml.SubElement(case, "system-out").text = _legal(_text([*rest, *waived], verdict))
    return case


def _add(case: Xml.Element, tag: str, message: str, text: str = "") -> Xml.Element:
    element = Xml.SubElement(case, tag, message=_legal(message))
    element.text = _legal(text) or None
    return element


def _text(found: Iterable[Finding], verdict: Verdict) -> str:
    return "\n\n".join(_finding(one, verdict.source.at(one.position)) for one in found)


def _finding(one: Finding, at: str) -> str:
    lines = [f"{'waived ' if one.waived else ''}{one.severity}[{one.code}] {one.name}: {one.message}"]
    lines += [f"at {at}"] if at else []
    return "\n".join([*lines, *(f"{word}: {text}" for word, text in details(one))])


def _legal(text: str) -> str:
    return _ILLEGAL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
