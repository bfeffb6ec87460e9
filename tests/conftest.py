"""What holds for every test: the event loop of async tests, and that nothing is skipped in CI."""

import os
from collections.abc import Generator

import pytest

from tests.mariadb import mariadb_server as mariadb_server


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Temporal's client and ours run on asyncio."""
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that skips itself."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A file that skips itself."""
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    expected_to_fail = hasattr(report, "wasxfail")
    if os.environ.get("CI") and report.skipped and not expected_to_fail:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
