"""A database that is away, stuck, or no database at all: 503 in time, nothing acknowledged, and well again after."""

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from settings import load
from store import migrate
from store.database import Stores
from tests.api.deadline import until
from tests.api.served import SECRET, Served, served
from tests.mariadb import MariaDB

LIST = "/admin/api/notification-outbox"
REPORT: dict[str, Any] = {"runId": "run", "status": "succeeded", "callback": {"url": "https://receiver.example/x"}}
SOON_S = 15


@contextmanager
def over(url: str, **api: int) -> Iterator[tuple[Served, httpx.Client]]:
    """An application over this database, and a client."""
    stores = Stores.open(url, url, connections=api.get("threads", 4))
    migrate.upgrade(stores.state)
    settings = load(state_database_url=url, auth={"secret": SECRET}, api=api)
    with served(settings, stores) as one, one.client() as client:
        assert client.put("/api/tasks/before", json=REPORT).status_code == 200
        yield one, client
    stores.close()


def refused_soon(client: httpx.Client) -> None:
    """Neither reads nor writes are served, and the caller knows it in time."""
    began = time.monotonic()
    for answer in (client.put("/api/tasks/during", json=REPORT), client.get(LIST)):
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_unavailable")
        assert answer.headers["retry-after"] == "1"
    assert time.monotonic() - began < SOON_S
    assert client.get("/health/live").status_code == 200


def not_ready(client: httpx.Client) -> None:
    """Those who watch see it too."""
    assert client.get("/health/ready").status_code == 503
    until(lambda: 'tidings_outbox_up{source="jobs"} 0.0' in client.get("/metrics").text)


def well_again(client: httpx.Client) -> None:
    """What was refused is served now."""
    assert client.put("/api/tasks/during", json=REPORT).status_code == 200
    assert client.get("/health/ready").status_code == 200
    assert len(client.get(LIST).json()["items"]) == 2


def test_a_server_that_was_killed(mariadb_server: MariaDB) -> None:
    with over(mariadb_server.new_database()) as (_, client):
        mariadb_server.kill()
        try:
            refused_soon(client)
            not_ready(client)
        finally:
            mariadb_server.start()
        well_again(client)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with over(f"sqlite:///{file}") as (_, client):
        whole = file.read_bytes()
        file.write_bytes(b"no database at all" * 1_000)
        refused_soon(client)
        not_ready(client)
        file.write_bytes(whole)
        well_again(client)


def test_a_file_that_somebody_else_holds(tmp_path: Path) -> None:
    with over(f"sqlite:///{tmp_path}/a.db") as (_, client):
        with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            refused_soon(client)
            other.execute("ROLLBACK")
        well_again(client)


def test_a_row_that_somebody_else_holds(mariadb_server: MariaDB) -> None:
    url = mariadb_server.new_database()
    with over(url) as (_, client), mariadb_server.held(f"{url.rpartition('/')[2]}.task_runs"):
        began = time.monotonic()
        assert client.put("/api/tasks/before", json={**REPORT, "runId": "other"}).status_code == 503
        assert time.monotonic() - began < SOON_S


def test_a_server_that_hangs_does_not_look_like_a_dead_process(mariadb_server: MariaDB) -> None:
    with over(mariadb_server.new_database(), threads=2) as (one, client), ThreadPoolExecutor(4) as callers:
        os.kill(mariadb_server.pid, signal.SIGSTOP)
        try:
            asked = [callers.submit(client.put, f"/api/tasks/{n}", json=REPORT) for n in range(4)]
            until(lambda: one.stores.state.engine.pool.status().count("Current Checked out connections: 2") == 1)
            assert httpx.get(f"{one.url}/health/live", trust_env=False).status_code == 200
            assert not any(answer.done() for answer in asked)
        finally:
            os.kill(mariadb_server.pid, signal.SIGCONT)
        assert [answer.result().status_code for answer in asked] == [200] * 4
