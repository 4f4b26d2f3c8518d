"""Judges: checks by somebody who is not us. Which there are, and whether they ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

JUDGES: Mapping[str, str] = {
    "sonic-yang": "SONiC's own YANG models, through yanglint",
    "eos-pyavd": "pyavd as a second renderer for EOS",
    "linux-sandbox": "a real kernel: links, sysctl and files in namespaces",
    "device-output": "real device output (shared/data/show)",
    "published-designs": "whole published designs (shared/published)",
    "cases": "real faults and their verdicts (shared/cases)",
    "opensm": "real OpenSM on simulated InfiniBand hardware (ibsim)",
}
"""Name for `@pytest.mark.judge(name)` -> what it is. Add a judge here and mark its tests."""

_PROPERTY = "judge"
_REFUSED = "refused skip"


@dataclass(slots=True)
class Tally:
    """How the tests of one judge ended."""

    passed: int = 0
    failed: int = 0
    not_run: int = 0
    reasons: list[str] = field(default_factory=list)

    @property
    def ran(self) -> bool:
        """True when the judge gave at least one verdict."""
        return self.passed + self.failed > 0

    def add(self, report: pytest.TestReport) -> None:
        """Counts one report; a test whose set-up failed gave no verdict."""
        if (reason := _reason_of_silence(report)) is not None:
            self.not_run += 1
            if reason not in self.reasons:
                self.reasons.append(reason)
        elif report.failed:
            self.failed += 1
        elif report.when == "call":
            self.passed += 1

    def __str__(self) -> str:
        """One cell of the table."""
        checks = self.passed + self.failed
        parts = [f"ran ({checks} check{'' if checks == 1 else 's'})"] if self.ran else ["did not run"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.not_run:
            parts.append(f"{self.not_run} without a verdict: {'; '.join(self.reasons)}")
        elif not self.ran:
            parts.append("no test of it was selected")
        return ", ".join(parts)


def reason_of_skip(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a skipped test was skipped, without pytest's prefix."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a skip into a failure, and remembers for the table that no verdict was given."""
    reason = reason_of_skip(report)
    report.outcome = "failed"
    report.longrepr = f"skipped, which CI does not accept: {reason}"
    if isinstance(report, pytest.TestReport):
        report.user_properties.append((_REFUSED, reason))


def _reason_of_silence(report: pytest.TestReport) -> str | None:
    for key, value in report.user_properties:
        if key == _REFUSED:
            return str(value)
    if report.skipped:
        return reason_of_skip(report)
    if report.failed and report.when == "setup":
        return f"the set-up of {report.nodeid} failed"
    return None


class JudgeTable:
    """pytest plug-in: counts the verdicts of every judge and prints the table.

    `whole_suite`: print it in any case; `demand_all`: fail the session when a judge did not run.
    """

    def __init__(self, *, whole_suite: bool, demand_all: bool) -> None:
        self._whole_suite = whole_suite
        self._demand_all = demand_all
        self._tallies = {name: Tally() for name in JUDGES}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # user_properties travel from xdist's workers to the controller; markers do not.
        for item in items:
            for mark in item.iter_markers("judge"):
                if not mark.args or (unknown := set(mark.args) - set(JUDGES)):
                    raise pytest.UsageError(f"{item.nodeid}: unknown judge {unknown or ''}; see {__name__}")
                item.user_properties.extend((_PROPERTY, name) for name in mark.args)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for key, value in report.user_properties:
            if key == _PROPERTY:
                self._tallies[str(value)].add(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._absent and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def _absent(self) -> list[str]:
        return [name for name, tally in self._tallies.items() if not tally.ran] if self._demand_all else []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Any:
        result = yield
        if not self._whole_suite and not any(t.ran or t.not_run for t in self._tallies.values()):
            return result
        terminalreporter.section("judges that are not us")
        width = max(map(len, JUDGES))
        for name, tally in self._tallies.items():
            terminalreporter.write_line(f"{name:<{width}}  {tally}")
        if self._absent:
            terminalreporter.write_line(
                f"ERROR: every judge must run here; did not: {', '.join(self._absent)}", red=True
            )
        return result
