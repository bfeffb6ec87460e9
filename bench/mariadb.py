"""A private MariaDB on a free port of loopback, as durable as it can be, gone with the block that started it."""

import asyncio
import os
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.child import Failed
from dev.lifeline import tied_to
from tests.temporal import free_ports

START_S = 60.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class MariaDb:
    """A server with an empty database."""

    url: str
    pid: int


@asynccontextmanager
async def private(directory: Path) -> AsyncIterator[MariaDb]:
    """Its files lie in `directory`."""
    data, (port,) = directory / "mariadb", free_ports(1)
    own = ("--no-defaults", f"--datadir={data}", *(("--user=root",) if os.getuid() == 0 else ()))
    install = ("mariadb-install-db", *own, "--auth-root-authentication-method=normal", "--skip-test-db")
    installing = await asyncio.create_subprocess_exec(*install, stdout=DEVNULL, stderr=DEVNULL)
    if await installing.wait():
        raise Failed("mariadb-install-db")
    server = await asyncio.create_subprocess_exec(
        *("mariadbd", *own, f"--socket={directory}/mariadb.sock", f"--port={port}", "--bind-address=127.0.0.1"),
        *("--innodb-flush-log-at-trx-commit=1", f"--log-error={directory}/mariadb.log"),
        *(f"--init-file={_init_file(directory)}",),
        stderr=DEVNULL,  # what matters goes to its log
        preexec_fn=tied_to(os.getpid()),
    )
    try:
        await _listens(port)
        yield MariaDb(f"mysql+pymysql://bench:bench@127.0.0.1:{port}/bench", server.pid)
    finally:
        server.terminate()
        await server.wait()


def _init_file(directory: Path) -> Path:
    file = directory / "init.sql"
    file.write_text(
        "CREATE DATABASE bench CHARACTER SET utf8mb4;\n"
        "CREATE USER bench@'127.0.0.1' IDENTIFIED BY 'bench';\nGRANT ALL ON bench.* TO bench@'127.0.0.1';\n",
        encoding="ascii",
    )
    return file


async def _listens(port: int) -> None:
    give_up = time.monotonic() + START_S
    while time.monotonic() < give_up:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(POLL_S)
    raise Failed("mariadbd")
