"""The databases that are measured."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mariadb import MariaDB


class Databases:
    """Where the product may keep its state: a SQLite file, or a private MariaDB, started when first asked for."""

    def __init__(self, directory: Path) -> None:
        self._mariadb = MariaDB(directory)
        self._started = False

    def close(self) -> None:
        """Ends the server."""
        if self._started:
            self._mariadb.stop()

    @contextmanager
    def new(self, kind: str) -> Iterator[tuple[Path, str, dict[str, int]]]:
        """An empty database: a directory for the rest, its URL, and its process if it has one."""
        with TemporaryDirectory(prefix="bench-") as name:
            if kind == "sqlite":
                yield Path(name), f"sqlite:///{name}/state.db", {}
            else:
                self._start()
                yield Path(name), self._mariadb.new_database(), {"mariadb": self._mariadb.pid}

    def _start(self) -> None:
        if not self._started:
            self._mariadb.install()
            self._mariadb.start()
            self._started = True


@contextmanager
def databases() -> Iterator[Databases]:
    """All of them, gone with the block."""
    with TemporaryDirectory(prefix="bench-mariadb-") as name, closing(Databases(Path(name))) as found:
        yield found
