"""One guest per module; what it said on its console goes into the report of a test that failed."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.vm.guest import Guest
from tests.vm.machine import booted, built


@pytest.fixture(scope="module")
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """Fresh from the image."""
    name = request.module.__name__.rpartition(".")[2]
    with booted(built().logs / name) as machine:
        yield Guest.of(machine, tmp_path_factory.mktemp(name) / "fabric")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and (guest := getattr(item, "funcargs", {}).get("guest")) is not None:
        report.sections.append(("guest", guest.machine.last_words()))
    return report
