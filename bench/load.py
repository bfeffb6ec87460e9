"""The load: accepts events over HTTP keep-alive, a bounded number at once, and waits until they have arrived."""

import asyncio
import json
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from typing import Self

from temporalio.client import Client

from bench import child
from bench.product import Ports, Running, run_body

CHANNELS = ("webhook", "email", "wecom")
PATIENCE_S = 60.0
CONNECT_POLL_S = 0.02
MAX_IDLE_S = 2.0
"""Servers close an idle connection after a few seconds; a request must not meet that."""


class Wrong(Exception):
    """The product did not do its work: what was measured means nothing."""


class Connection:
    """HTTP keep-alive to the product, reading no more of the protocol than its answers need."""

    def __init__(self, product: Running) -> None:
        self._port = product.port
        self._headers = f"Host: bench\r\nAuthorization: Bearer {product.token}\r\nContent-Type: application/json\r\n"
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None
        self._fresh_until = 0.0

    async def report(self, task_id: str, body: bytes) -> str:
        """Reports a run of the task; the id of its event. Raises Wrong unless it was accepted."""
        writer = await self._connected()
        head = f"PUT /api/tasks/{task_id} HTTP/1.1\r\n{self._headers}Content-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        told = await self._reader.readexactly(int(length))
        self._fresh_until = time.monotonic() + MAX_IDLE_S
        if not answer.startswith(b"HTTP/1.1 200"):
            raise Wrong(answer.partition(b"\r\n")[0].decode())
        event_id: str = json.loads(told)["events"][0]["eventId"]
        return event_id

    async def _connected(self) -> asyncio.StreamWriter:
        """The connection, or a new one when it has been idle so long that the product may be closing it."""
        if self._writer is None or time.monotonic() > self._fresh_until:
            self.close()
            self._reader, self._writer = await _dialled(self._port)
        return self._writer

    def close(self) -> None:
        """Ends it."""
        if self._writer is not None:
            self._writer.close()


async def _dialled(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, made as soon as the product listens."""
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up:
        with suppress(ConnectionRefusedError):
            return await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(CONNECT_POLL_S)
    raise Wrong("the API does not listen")


class Arrivals:
    """What the receivers say they were sent."""

    def __init__(self, receivers: Process) -> None:
        self._receivers = receivers
        self._seen: dict[str, dict[str, int]] = {}
        self._complete: dict[str, asyncio.Future[dict[str, int]]] = {}

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[Self]:
        """Listens to them for as long as the block runs; yields itself. Raises Wrong when anything arrives twice."""
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self._listen())
            yield self
            listening.cancel()

    async def of(self, recipient: str) -> dict[str, int]:
        """When each channel's message for this recipient arrived, once all have."""
        complete = self._complete.setdefault(recipient, asyncio.get_running_loop().create_future())
        async with asyncio.timeout(PATIENCE_S):
            return await complete

    async def _listen(self) -> None:
        while True:
            channel, recipient, at = (await child.line(self._receivers)).split(" ")
            seen = self._seen.setdefault(recipient, {})
            if channel in seen:
                raise Wrong(f"{channel} arrived twice")
            seen[channel] = int(at)
            if len(seen) == len(CHANNELS):
                complete = self._complete.setdefault(recipient, asyncio.get_running_loop().create_future())
                complete.set_result(seen)


@dataclass(slots=True)
class Measured:
    """Seconds of each event, from the start of its accept request."""

    accept: list[float] = field(default_factory=list)
    channels: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in CHANNELS})
    last: list[float] = field(default_factory=list)


async def deliver(
    product: Running, arrivals: Arrivals, ports: Ports, names: Iterator[str], at_once: int, measured: Measured
) -> None:
    """Sends every name's event on its way, and the next one only when one of `at_once` is over.

    Over means that its workflow has ended, as it does for the bare ceiling: counting arrivals alone would let workflows
    pile up behind them and call that throughput.
    """
    temporal = await Client.connect(product.temporal)

    async def slot() -> None:
        with closing(Connection(product)) as connection:
            for name in names:
                event_id = await _one(connection, arrivals, ports, name, measured)
                await temporal.get_workflow_handle(event_id).result()

    await asyncio.gather(*(slot() for _ in range(at_once)))


async def _one(connection: Connection, arrivals: Arrivals, ports: Ports, name: str, measured: Measured) -> str:
    started = time.monotonic_ns()
    event_id = await connection.report(name, run_body(name, ports))
    measured.accept.append((time.monotonic_ns() - started) / 1e9)
    arrived = await arrivals.of(name)
    for channel, at in arrived.items():
        measured.channels[channel].append((at - started) / 1e9)
    measured.last.append((max(arrived.values()) - started) / 1e9)
    return event_id
