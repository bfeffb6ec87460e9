"""What the tests of the relay share: a Temporal server, a file database, and a relay with its worker over both."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from temporalio.client import Client

from dev.temporal_server import TemporalServer
from store import migrate
from store.database import Stores
from tests.relay.post import Post
from tests.temporal import private_server


@pytest.fixture(scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalServer]:
    """A server that knows our search attributes; nobody stops it."""
    async with private_server(tmp_path_factory.mktemp("temporal")) as server:
        yield server


@pytest.fixture
async def client(server: TemporalServer) -> Client:
    """A client of the shared server."""
    return await Client.connect(server.address)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """An empty store in one file."""
    url = f"sqlite:///{tmp_path}/store.db"
    stores = Stores.open(url, url, connections=4)
    migrate.upgrade(stores.state)
    yield stores
    stores.close()


@pytest.fixture
async def post(client: Client, stores: Stores) -> AsyncIterator[Post]:
    """A relay that is not running yet."""
    async with Post(client, stores) as post:
        yield post
