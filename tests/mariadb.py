"""A private MariaDB for the tests: started when the first test asks, on a free port, ended with the session."""

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pymysql
import pytest

from dev.lifeline import tied_to
from tests.temporal import free_ports

START_S = 60.0
USER = "tidings"
PASSWORD = "tidings-tests"


class MariaDB:
    """One server; every test takes a database of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (self.port,) = free_ports(1)
        self._own = ("--no-defaults", f"--datadir={directory}/data", *(("--user=root",) if os.getuid() == 0 else ()))
        self._server: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._server.pid

    def install(self) -> None:
        """Creates the system tables."""
        how = ("--auth-root-authentication-method=normal", "--skip-test-db")
        subprocess.run(["mariadb-install-db", *self._own, *how], check=True, capture_output=True, timeout=START_S)

    def start(self) -> None:
        """Starts the server; returns when it lets us in."""
        init = self._directory / "init.sql"
        init.write_text(
            f"CREATE USER IF NOT EXISTS {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO {USER}@'127.0.0.1';\n",
            encoding="ascii",
        )
        self._server = subprocess.Popen(
            [
                *("mariadbd", *self._own, f"--socket={self._directory}/socket", f"--port={self.port}"),
                *("--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=64M"),
                *("--skip-name-resolve", f"--log-error={self._directory}/error.log", f"--init-file={init}"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=tied_to(os.getpid()),
        )
        self._answers()

    def stop(self) -> None:
        """Ends it in order."""
        self._server.terminate()
        self._server.wait(timeout=30)

    def kill(self) -> None:
        """Ends it as a power cut would, but for the caches of the system."""
        self._server.send_signal(signal.SIGKILL)
        self._server.wait(timeout=30)

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"t_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        return f"mysql+pymysql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{name}"

    def execute(self, statement: str) -> None:
        """Runs one statement as the tests' user, who may do anything."""
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    @contextmanager
    def held(self, table: str) -> Iterator[None]:
        """Holds a lock on every row of the table, and on the gaps between them."""
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} FOR UPDATE")
            yield
            connection.rollback()

    def _connect(self) -> "pymysql.Connection[pymysql.cursors.Cursor]":
        return pymysql.connect(host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, connect_timeout=5)

    def _answers(self) -> None:
        give_up = time.monotonic() + START_S
        while True:
            with suppress(pymysql.Error):
                self._connect().close()
                return
            assert self._server.poll() is None, "mariadbd ended"
            assert time.monotonic() < give_up, "mariadbd does not answer"
            time.sleep(0.05)


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDB]:
    """The session's server."""
    server = MariaDB(tmp_path_factory.mktemp("mariadb"))
    server.install()
    server.start()
    yield server
    server.stop()
