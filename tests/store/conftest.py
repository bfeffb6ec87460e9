"""The store contract runs on every database we support; each test gets an empty, migrated one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from store import migrate
from store.database import Database
from tests.mariadb import MariaDB


@pytest.fixture(params=["sqlite", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    server: MariaDB = request.getfixturevalue("mariadb_server")
    return server.new_database()


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """A migrated database with enough connections for the races."""
    database = Database(url, connections=16)
    migrate.upgrade(database)
    yield database
    database.close()
