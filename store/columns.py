"""The column types every table is made of, on every database."""

from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, LargeBinary, String, Text, TypeDecorator
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine


class Key(TypeDecorator[str]):
    """Text that compares byte for byte: VARBINARY on MySQL, where any collation would merge different keys."""

    impl = String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """VARBINARY or plain text (SQLite compares text byte for byte)."""
        return mysql.VARBINARY(self.length) if dialect.name == "mysql" else String(self.length)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """Text to stored bytes."""
        return value.encode() if value is not None and dialect.name == "mysql" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """Stored bytes to text."""
        return value.decode() if isinstance(value, bytes) else value


BigKey = BigInteger().with_variant(Integer(), "sqlite")
"""An automatic row number: SQLite numbers only a column declared INTEGER."""
Blob = LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql")
LongText = Text().with_variant(mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql")
Word = Key(64)
"""A status, code or name of ours."""
CallerId = Key(512)
"""An id given by a caller: 128 characters of at most 4 bytes."""
EventId = Key(512)
Micros = BigInteger()
