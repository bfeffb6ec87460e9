"""The Temporal development server as our child: it starts, keeps its state, comes back, and never outlives us."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from dev.temporal_server import SEARCH_ATTRIBUTES, TemporalServer
from process import Refused
from tests.temporal import private_server

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.slow


async def eventually(holds: Callable[[], Awaitable[bool]], *, within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not await holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.05)


def listening(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def start_workflow(server: TemporalServer) -> None:
    attributes = [SearchAttributePair(SearchAttributeKey.for_keyword(name), "x") for name in SEARCH_ATTRIBUTES]
    client = await Client.connect(server.address)
    await client.start_workflow("Anything", id="w", task_queue="q", search_attributes=TypedSearchAttributes(attributes))


async def has_workflow(server: TemporalServer) -> bool:
    try:
        client = await Client.connect(server.address)
        await client.get_workflow_handle("w").describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


async def back_with_its_state(server: TemporalServer, *, other_than: int) -> bool:
    try:
        return server.pid != other_than and await has_workflow(server)
    except (RuntimeError, RPCError):  # not listening, or not healthy yet
        return False


async def gone(pid: int) -> bool:
    return not alive(pid)


async def test_it_takes_our_search_attributes_at_once_and_keeps_its_state(tmp_path: Path) -> None:
    async with private_server(tmp_path) as server:
        await start_workflow(server)
        assert listening(server.ui_url.removeprefix("http://"))
    assert not listening(server.address)
    async with private_server(tmp_path) as server:
        assert await has_workflow(server)


async def test_a_deleted_database_is_a_fresh_start(tmp_path: Path) -> None:
    async with private_server(tmp_path) as server:
        await start_workflow(server)
    (tmp_path / "temporal.db").unlink()  # what SQLite keeps beside it stays, as when a person deletes one file
    async with private_server(tmp_path) as server:
        assert not await has_workflow(server)
        await start_workflow(server)


async def test_it_comes_back_when_it_dies(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with private_server(tmp_path) as server:
        await start_workflow(server)
        first = server.pid
        os.kill(first, signal.SIGKILL)
        await eventually(partial(back_with_its_state, server, other_than=first))
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.getMessage() == "the Temporal server ended and is started again"
    assert (record.__dict__["code"], record.__dict__["restarts"]) == (-9, 1)


async def test_it_is_stopped_even_when_it_does_not_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dev.temporal_server._STOP_DEADLINE_S", 0.2)
    async with private_server(tmp_path) as server:
        os.kill(server.pid, signal.SIGSTOP)
    assert not alive(server.pid)


async def test_a_taken_port_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = TemporalServer(tmp_path / "t.db", tmp_path / "t.log", port=port, ui_port=port + 1)
        with pytest.raises(Refused, match=rf"^the Temporal server could not start: .*{port}.*address already in use$"):
            await server.__aenter__()


async def test_a_file_that_is_no_database_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "temporal.db").write_text("this is a letter, not a database\n" * 100)
    with pytest.raises(Refused, match=r"^the Temporal server could not start: .*not a database"):
        await private_server(tmp_path).__aenter__()


async def test_it_dies_with_us_even_when_we_are_killed(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom tests.temporal import private_server\n"
        "async def main():\n"
        "    async with private_server(Path(sys.argv[1])) as server:\n"
        "        print(server.pid, flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        server_pid = int(await asyncio.to_thread(parent.stdout.readline))
        assert os.getpgid(server_pid) != os.getpgid(parent.pid)  # Ctrl-C at a terminal reaches one group only
        parent.kill()
        parent.wait()
        await eventually(partial(gone, server_pid))
