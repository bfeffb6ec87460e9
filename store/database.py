"""One database: its engine, and the only place where transactions begin, end and are tried again."""

import logging
import random
import sqlite3
import time
from collections.abc import Callable
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from domain.errors import InvalidInput, StoreFault, StoreUnavailable
from domain.identity import source_of
from domain.kinds import Source
from store.clock import sqlite_now

LOG = logging.getLogger("tidings.store")

T = TypeVar("T")

_READS_ONLY = {"tidings_reads_only": True}

TRIES = 5
"""How often one transaction is tried: deadlock, lock wait, lost connection, a race for the same new key."""

PATIENCE_S = 3
"""How long a lock is waited for, and after how long nothing is tried again: callers wait, and fill every thread."""

_RETRYABLE_MYSQL = frozenset({1205, 1213, 2006, 2013, 2014, 2055, 1927, 1158, 1159, 1160, 1161})
_DUPLICATE_KEY_MYSQL = 1062
_URL_OPTIONS = frozenset({"ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_cert", "ssl_verify_identity", "unix_socket"})
_SQLITE_FAULTS = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE})
_AWAY = frozenset({2002, 2003, 2005, 2006, 2013})


class Database:
    """A store of events. Safe to use from many threads."""

    def __init__(self, url: str, *, connections: int) -> None:
        """`connections` bounds the open connections; SQLite always has one, which serialises its transactions."""
        self.name = _parsed(url).get_backend_name()
        self._engine = _sqlite(url) if self.name == "sqlite" else _mysql(url, connections)

    @property
    def engine(self) -> Engine:
        """For migrations only; everything else goes through `read` and `write`."""
        return self._engine

    def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` without keeping anything it might write. Raises StoreUnavailable."""

        def once() -> T:
            with self._engine.connect().execution_options(**_READS_ONLY) as connection:
                answer = work(connection)
                connection.rollback()
                return answer

        return _persistently(once)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` in one transaction and commits. Raises StoreUnavailable.

        `work` runs again when the first answer was lost, although it may have been committed: it must then find its own
        rows and give the same answer.
        """

        def once() -> T:
            with self._engine.begin() as connection:
                return work(connection)

        return _persistently(once)

    def close(self) -> None:
        """Closes every connection."""
        self._engine.dispose()


def _persistently(once: Callable[[], T]) -> T:
    give_up = time.monotonic() + PATIENCE_S
    for tries_left in range(TRIES - 1, -1, -1):
        try:
            return once()
        except PoolTimeout:
            raise StoreUnavailable() from None
        except StatementError as error:
            if not isinstance(error, DBAPIError) or _statement_is_at_fault(error):
                LOG.error("store_fault", extra={"error_type": type(error.orig).__name__})
                raise StoreFault() from None
            if tries_left == 0 or time.monotonic() > give_up or not _worth_another_try(error):
                LOG.error("store_fault", extra={"error_type": type(error.orig).__name__, "code": _number(error)})
                raise StoreUnavailable() from None
            time.sleep(random.uniform(0.01, 0.05) * (TRIES - tries_left))
    raise AssertionError("unreachable")


def _statement_is_at_fault(error: DBAPIError) -> bool:
    """Whether the database answered and refused what it was given, so that nobody else is concerned."""
    if isinstance(error, (DataError, ProgrammingError, NotSupportedError)):
        return True
    return isinstance(error.orig, sqlite3.Error) and _number(error) in _SQLITE_FAULTS


def _worth_another_try(error: DBAPIError) -> bool:
    if error.connection_invalidated:
        return True
    original: Any = error.orig
    if isinstance(original, sqlite3.Error):
        duplicate = original.sqlite_errorcode in (
            sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
            sqlite3.SQLITE_CONSTRAINT_UNIQUE,
        )
        return duplicate or original.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    number = _number(error)
    return number in _RETRYABLE_MYSQL or (isinstance(error, IntegrityError) and number == _DUPLICATE_KEY_MYSQL)


def _parsed(url: str) -> URL:
    """The URL's parts. Raises InvalidInput in words of ours: a parser's own would quote a part of the password."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InvalidInput("a database URL cannot be read; escape `@`, `:` and `/` in its password") from None
    if unknown := set(parsed.query) - _URL_OPTIONS:
        raise InvalidInput(f"a database URL has options that are not known: {', '.join(sorted(unknown))}")
    return parsed


def described(error: SQLAlchemyError) -> str:
    """What a database refused, in words of ours: the driver's text may hold values."""
    number = _number(error) if isinstance(error, DBAPIError) else None
    words = {1044: "refuses this user the database", 1045: "refuses the login", 1049: "has no such database"}
    said = words.get(number or 0, "cannot be reached" if number in _AWAY else "refused")
    return f"{said} ({number or type(error).__name__})"


def _number(error: DBAPIError) -> int | None:
    """The database's own error number. Its text may hold values, so nobody is shown that."""
    original: Any = error.orig
    if isinstance(original, sqlite3.Error):
        return getattr(original, "sqlite_errorcode", None)
    number = original.args[0] if original is not None and original.args else None
    return number if isinstance(number, int) else None


def _mysql(url: str, connections: int) -> Engine:
    engine = create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_size=connections,
        max_overflow=0,
        pool_timeout=10,
        pool_recycle=1_800,
        pool_reset_on_return=None,  # every transaction ends in commit or rollback; another one costs a round trip
        hide_parameters=True,
        connect_args={"charset": "utf8mb4", "connect_timeout": 5, "read_timeout": 30, "write_timeout": 30},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'")
            cursor.execute(f"SET innodb_lock_wait_timeout = {PATIENCE_S}")

    return engine


def _sqlite(url: str) -> Engine:
    # One connection: SQLite has one writer anyhow, and waiting in our pool is fairer and faster than its busy loop.
    # A rollback journal, because write-ahead logging before SQLite 3.51.3 can corrupt a file that several connections
    # share; TRUNCATE with FULL syncs the journal's end too, so a commit that was answered survives a power cut.
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        pool_timeout=10,
        pool_reset_on_return=None,
        hide_parameters=True,
        connect_args={"check_same_thread": False, "isolation_level": None, "timeout": PATIENCE_S},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, record: Any) -> None:
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.create_function("tidings_now", 0, sqlite_now)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reads = connection.get_execution_options().keys() >= _READS_ONLY.keys()
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


class Stores:
    """The state and the config database; one and the same `Database` when their URLs are equal."""

    def __init__(self, state: Database, config: Database) -> None:
        self.state = state
        self.config = config

    @classmethod
    def open(cls, state_url: str, config_url: str, *, connections: int) -> Self:
        """Builds the engines; nothing is connected yet."""
        state = Database(state_url, connections=connections)
        same = _parsed(state_url) == _parsed(config_url)
        return cls(state, state if same else Database(config_url, connections=connections))

    def holding(self, source: Source) -> Database:
        """The database in which events of this source live."""
        return self.config if source is Source.APPROVALS else self.state

    def of_event(self, event_id: str) -> Database | None:
        """The database an event id belongs to; None when it is not an event id of ours."""
        source = source_of(event_id)
        return self.holding(source) if source else None

    def each(self) -> list[Database]:
        """Every database once."""
        return [self.state] if self.state is self.config else [self.state, self.config]

    def close(self) -> None:
        """Closes both."""
        for database in self.each():
            database.close()
