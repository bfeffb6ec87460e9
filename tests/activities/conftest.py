"""What the tests of the activities share: a file database and the store's threads over it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from store import migrate
from store.database import Stores
from store.threads import StoreThreads


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreThreads]:
    """An empty store in `store.db`."""
    url = f"sqlite:///{tmp_path}/store.db"
    stores = Stores.open(url, url, connections=4)
    migrate.upgrade(stores.state)
    threads = StoreThreads(stores, 4)
    yield threads
    threads.close()
    stores.close()
