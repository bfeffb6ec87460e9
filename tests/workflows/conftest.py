"""What the tests of the process share: one Temporal server in real time, one that skips it."""

import sysconfig
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from tests.temporal import private_server

TEST_SERVER = Path(sysconfig.get_path("scripts")) / "temporal-test-server"


@pytest.fixture(scope="session")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """A client of a server that knows our search attributes."""
    async with private_server(tmp_path_factory.mktemp("temporal")) as server:
        yield await Client.connect(server.address)


@pytest.fixture
async def skipping() -> AsyncIterator[WorkflowEnvironment]:
    """A server in which time passes when it is told to, or when only timers are left to wait for."""
    async with await WorkflowEnvironment.start_time_skipping(test_server_existing_path=str(TEST_SERVER)) as environment:
        yield environment
