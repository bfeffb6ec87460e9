"""The application served for real: a socket, a thread with its own loop, and clients with tokens."""

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import httpx
from sqlalchemy import Connection, func, select

from api.app import create_app
from api.auth import mint
from api.serve import serve
from settings import Settings
from store.database import Stores
from store.schema import metadata
from tests.temporal import free_ports

SECRET = "a secret of thirty-two bytes, or a few more"
EVERYTHING = ("tasks:write", "approvals:write", "runs:read", "runs:write")


class Served:
    """One running application."""

    def __init__(self, settings: Settings, stores: Stores, port: int) -> None:
        self.settings = settings
        self.stores = stores
        self.port = port
        self.nudges = 0
        self.app = create_app(settings, stores, nudge=self.nudge)

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://127.0.0.1:{self.port}"

    def client(
        self, *, tenant: str = "t", permissions: Iterable[str] = EVERYTHING, token: str | None = None
    ) -> httpx.Client:
        """A client with a token of this tenant."""
        token = token or mint(
            SECRET, tenant=tenant, subject="tester", permissions=list(permissions), lifetime=timedelta(hours=1)
        )
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=30)

    def rows(self) -> int:
        """How many rows all tables hold together."""

        def count(connection: Connection) -> int:
            return sum(connection.scalars(select(func.count()).select_from(t)).one() for t in metadata.sorted_tables)

        return sum(database.read(count) for database in self.stores.each())

    def nudge(self) -> None:
        """What the application calls after a commit that left an intent."""
        self.nudges += 1


@contextmanager
def served(settings: Settings, stores: Stores) -> Iterator[Served]:
    """Serves until the block ends."""
    (port,) = free_ports(1)
    one = Served(settings, stores, port)
    listening, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(serve(one.app, "127.0.0.1", port, stop, listening=listening.set))
    )
    thread.start()
    try:
        assert listening.wait(10)
        yield one
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()
