"""An application for each test, over each database."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from settings import load
from store import migrate
from store.database import Stores
from tests.api.served import SECRET, Served, served
from tests.mariadb import MariaDB


@pytest.fixture(params=["sqlite", "mariadb"])
def api(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """A served application; state and config are two databases."""
    if request.param == "sqlite":
        urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("state", "config")]
    else:
        server: MariaDB = request.getfixturevalue("mariadb_server")
        urls = [server.new_database() for _ in range(2)]
    settings = load(state_database_url=urls[0], config_database_url=urls[1], auth={"secret": SECRET})
    stores = Stores.open(*urls, connections=16)
    for database in stores.each():
        migrate.upgrade(database)
    with served(settings, stores) as one:
        yield one
    stores.close()


@pytest.fixture
def client(api: Served) -> Iterator[httpx.Client]:
    """A client that may do everything, in tenant `t`."""
    with api.client() as client:
        yield client


@pytest.fixture(scope="module")
def sqlite_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One application for all tests of a file, none of which may write: its database must stay empty."""
    url = f"sqlite:///{tmp_path_factory.mktemp('empty')}/a.db"
    stores = Stores.open(url, url, connections=4)
    migrate.upgrade(stores.state)
    with served(load(state_database_url=url, auth={"secret": SECRET}), stores) as one:
        yield one
        assert one.rows() == 0
    stores.close()
