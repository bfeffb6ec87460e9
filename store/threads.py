"""The synchronous store for asynchronous callers: its own threads, and one transaction for all that waits at a moment.

What callers ask for while a transaction is under way is committed together in the next one, so that a busy worker pays
for one commit and one hand-over between threads instead of dozens. A caller sees no difference: its answer comes after
the commit.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import Connection

from domain.errors import NotFound, StoreUnavailable
from store.database import Database, Stores

T = TypeVar("T")

MAX_TOGETHER = 32
"""Most pieces of work in one transaction: it holds the locks of all of them."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One piece of work and who waits for it."""

    work: Callable[[Connection], Any]
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[Any]"


@dataclass(frozen=True, slots=True)
class _Answer:
    """What became of one piece of work."""

    value: Any = None
    error: Exception | None = None


class StoreThreads:
    """Runs store functions for many tasks at once. Each must answer the same when it is run again."""

    def __init__(self, stores: Stores, threads: int) -> None:
        """`threads` are at work on each database, each with a connection; SQLite, which has one writer, gets one."""
        self.stores = stores
        self._queues = {
            database: _Queue(database, 1 if database.name == "sqlite" else threads) for database in stores.each()
        }

    async def of_event(self, event_id: str, work: Callable[[Connection], T]) -> T:
        """Runs work on the database that holds the event. Raises NotFound, and as `run` does."""
        database = self.stores.of_event(event_id)
        if database is None:
            raise NotFound()
        return await self.run(database, work)

    async def run(self, database: Database, work: Callable[[Connection], T]) -> T:
        """Runs work in a transaction and answers after its commit. Raises as the work does, and StoreUnavailable."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._queues[database].put(_Asked(work, loop, answer))
        return await answer

    def close(self) -> None:
        """Finishes what was asked for and ends the threads."""
        for queue in self._queues.values():
            queue.close()


class _Queue:
    """The work that waits for one database, and the threads that do it."""

    def __init__(self, database: Database, threads: int) -> None:
        self._database = database
        self._waiting: SimpleQueue[_Asked | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._serve, name=f"store-{number}") for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def put(self, asked: _Asked) -> None:
        self._waiting.put(asked)

    def close(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while (first := self._waiting.get()) is not None:
            together = self._all_waiting(first)
            answers = _perform(self._database, [asked.work for asked in together])
            for loop in {asked.loop for asked in together}:
                pairs = [(a.answer, b) for a, b in zip(together, answers, strict=True) if a.loop is loop]
                loop.call_soon_threadsafe(_tell, pairs)

    def _all_waiting(self, first: _Asked) -> list[_Asked]:
        together = [first]
        while len(together) < MAX_TOGETHER:
            try:
                asked = self._waiting.get_nowait()
            except Empty:
                break
            if asked is None:  # the sign to end is for whoever comes next, which may be us
                self._waiting.put(None)
                break
            together.append(asked)
        return together


def _perform(database: Database, works: list[Callable[[Connection], Any]]) -> list[_Answer]:
    """All works in one transaction; each in its own when that fails, for one that fails must not stop the others."""
    if len(works) == 1:
        return [_alone(database, works[0])]
    try:
        return [_Answer(value) for value in database.write(lambda connection: [work(connection) for work in works])]
    except Exception:
        first = _alone(database, works[0])
        if type(first.error) is StoreUnavailable:  # away for everybody: nobody gains from trying one by one
            return [first] * len(works)
        return [first, *(_alone(database, work) for work in works[1:])]


def _alone(database: Database, work: Callable[[Connection], Any]) -> _Answer:
    try:
        return _Answer(database.write(work))
    except Exception as error:
        return _Answer(error=error)


def _tell(pairs: list[tuple["asyncio.Future[Any]", _Answer]]) -> None:
    for future, answer in pairs:
        if future.done():  # whoever asked was cancelled; the work was done all the same
            continue
        if answer.error is not None:
            future.set_exception(answer.error)
        else:
            future.set_result(answer.value)
