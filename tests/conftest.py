"""What all tests share: the neighbour folder with vendor facts, golden files, judges, CI's rules."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.golden import Golden
from tests.support.judges import JudgeTable, reason_of_skip, refuse_skip

TESTS = Path(__file__).resolve().parent
SHARED = TESTS.parents[1] / "shared"
# A skip that CI accepts: the machine has no such hardware.
_ACCEPTED_SKIP = "hardware:"


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"true", "1"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the expected outputs anew instead of comparing"
    )


def pytest_configure(config: pytest.Config) -> None:
    if mutant := os.environ.get("FABRIC_TEMPLATE_MUTANT"):
        from tests.support import mutant as mutants

        mutants.install(mutant)
    if _in_ci() and config.getoption("--update-golden"):
        raise pytest.UsageError("--update-golden would make every comparison pass; CI refuses it")
    whole_suite = os.environ.get("FABRIC_ALL_JUDGES") == "1"
    table = JudgeTable(whole_suite=whole_suite, demand_all=whole_suite and _in_ci())
    config.pluginmanager.register(table, "judges")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What has a lab up for minutes comes first, so that no worker is left alone with it at the end."""
    items.sort(
        key=lambda one: (one.path.name != "test_e2e_infiniband.py", not one.path.name.startswith("test_e2e_"))
    )


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` beside the checkout: vendor facts, real outputs, models."""
    if not SHARED.is_dir():
        pytest.skip("no folder 'shared' beside the checkout: vendor facts and models are not published here")
    return SHARED


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> Golden:
    """Expected outputs below tests/golden; `golden.at("..", "errors")` for those elsewhere."""
    return Golden(TESTS / "golden", bool(request.config.getoption("--update-golden")))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        _judge_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _judge_skip(report)
    return report


def _judge_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Refuses a skip in CI, where everything that a test needs must be there."""
    if _in_ci() and report.skipped and not reason_of_skip(report).startswith(_ACCEPTED_SKIP):
        refuse_skip(report)
