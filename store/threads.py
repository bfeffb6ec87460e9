"""The synchronous store for asynchronous callers: its own threads, as many as it may have connections."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection

from domain.errors import NotFound
from store.database import Database, Stores

T = TypeVar("T")


class StoreThreads:
    """Runs store functions on explicit threads, so that nothing else can starve them."""

    def __init__(self, stores: Stores, threads: int) -> None:
        self.stores = stores
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="store")

    async def read(self, event_id: str, work: Callable[[Connection], T]) -> T:
        """`Database.read` on the database that holds the event. Raises NotFound for an id that is not ours."""
        return await self.run(self._holding(event_id).read, work)

    async def write(self, event_id: str, work: Callable[[Connection], T]) -> T:
        """`Database.write` on the database that holds the event. Raises NotFound for an id that is not ours."""
        return await self.run(self._holding(event_id).write, work)

    async def run(self, transaction: Callable[[Callable[[Connection], T]], T], work: Callable[[Connection], T]) -> T:
        """Runs one transaction on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, transaction, work)

    def close(self) -> None:
        """Waits for what runs."""
        self._threads.shutdown()

    def _holding(self, event_id: str) -> Database:
        database = self.stores.of_event(event_id)
        if database is None:
            raise NotFound()
        return database
