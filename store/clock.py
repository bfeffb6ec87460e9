"""The database's own time: the only clock that leases, due times and order are measured by."""

import time
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

SECOND = 1_000_000
"""Microseconds in a second."""


class db_now(GenericFunction[int]):
    """Microseconds since 1970 in UTC, by the database's clock."""

    type = BigInteger()
    inherit_cache = True


@compiles(db_now, "mysql", "mariadb")
def _mysql_now(element: db_now, compiler: SQLCompiler, **kw: Any) -> str:
    return "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"


@compiles(db_now, "sqlite")
def _sqlite_now(element: db_now, compiler: SQLCompiler, **kw: Any) -> str:
    return "tidings_now()"


def sqlite_now() -> int:
    """What `tidings_now()` answers inside SQLite: this machine's clock, which is where the database lives."""
    return time.time_ns() // 1_000


def micros(seconds: float) -> int:
    """Seconds as whole microseconds."""
    return int(seconds * SECOND)


def rfc3339(at: int | None) -> str | None:
    """A stored time as RFC 3339 in UTC with `Z`, to the microsecond."""
    if at is None:
        return None
    return (
        datetime.fromtimestamp(at // SECOND, UTC)
        .replace(microsecond=at % SECOND)
        .isoformat(timespec="microseconds")
        .replace("+00:00", "Z")
    )
