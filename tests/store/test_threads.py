"""Work that waits together is committed together, and what fails in it fails alone."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from sqlalchemy import Connection, event, text

from domain.errors import NotFound, StoreUnavailable
from store.database import Database, Stores
from store.threads import MAX_TOGETHER, StoreThreads

COUNT = 100


@pytest.fixture
def store(database: Database) -> Iterator[StoreThreads]:
    """Threads over one database that has a table of numbers."""
    database.write(partial(run, "CREATE TABLE numbers (n INTEGER PRIMARY KEY)"))
    threads = StoreThreads(Stores(database, database), 1)
    yield threads
    threads.close()


def run(statement: str, connection: Connection) -> None:
    connection.execute(text(statement))


def add(number: int, connection: Connection) -> int:
    connection.execute(text("INSERT INTO numbers VALUES (:n)"), {"n": number})
    return number


def numbers(database: Database) -> list[int]:
    return database.read(lambda connection: list(connection.scalars(text("SELECT n FROM numbers ORDER BY n"))))


Work = Callable[[Connection], int | None]


async def held_back(store: StoreThreads, database: Database, works: list[Work]) -> list[int | BaseException | None]:
    """Everything is asked for while one transaction is under way, so that it waits together."""
    begun, release = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        begun.set()
        release.wait(10)

    holding = asyncio.create_task(store.run(database, hold))
    await asyncio.to_thread(begun.wait, 10)
    asked = [asyncio.create_task(store.run(database, work)) for work in works]
    await asyncio.sleep(0)
    release.set()
    await holding
    return await asyncio.gather(*asked, return_exceptions=True)


async def test_what_waits_is_committed_together(store: StoreThreads, database: Database) -> None:
    commits: list[object] = []
    event.listen(database.engine, "commit", commits.append)
    found = await held_back(store, database, [partial(add, number) for number in range(COUNT)])
    assert found == list(range(COUNT))
    assert numbers(database) == list(range(COUNT))
    assert len(commits) <= 1 + -(-COUNT // MAX_TOGETHER)


async def test_a_refusal_is_told_to_its_own_caller_only(store: StoreThreads, database: Database) -> None:
    def refuse(connection: Connection) -> None:
        add(1_000, connection)
        raise NotFound

    found = await held_back(store, database, [partial(add, 1), refuse, partial(add, 2)])
    assert found[0] == 1
    assert isinstance(found[1], NotFound)
    assert found[2] == 2
    assert numbers(database) == [1, 2]


async def test_a_statement_that_cannot_be_stops_no_other(store: StoreThreads, database: Database) -> None:
    broken = partial(run, "INSERT INTO nowhere VALUES (1)")
    found = await held_back(store, database, [partial(add, 1), broken, partial(add, 2)])
    assert [found[0], found[2]] == [1, 2]
    assert isinstance(found[1], StoreUnavailable)
    assert numbers(database) == [1, 2]


async def test_the_first_of_many_that_cannot_be_stops_no_other(store: StoreThreads, database: Database) -> None:
    broken = partial(run, "INSERT INTO nowhere VALUES (1)")
    found = await held_back(store, database, [broken, partial(add, 1), partial(add, 2)])
    assert isinstance(found[0], StoreUnavailable)
    assert found[1:] == [1, 2]


async def test_who_no_longer_waits_changes_nothing_for_the_others(store: StoreThreads, database: Database) -> None:
    asked = [asyncio.create_task(store.run(database, partial(add, number))) for number in range(10)]
    await asyncio.sleep(0)
    asked[3].cancel()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [value for value in found if not isinstance(value, asyncio.CancelledError)] == [0, 1, 2, *range(4, 10)]


async def test_an_event_that_is_not_ours_is_not_found(store: StoreThreads) -> None:
    with pytest.raises(NotFound):
        await store.of_event("somebody else's", partial(add, 1))
