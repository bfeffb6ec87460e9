"""The load: accepts events over HTTP keep-alive, a bounded number at once, and waits until they have arrived."""

import asyncio
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from bench import child
from bench.product import Ports, Running, run_body

CHANNELS = ("webhook", "email", "wecom")
PATIENCE_S = 60.0
CONNECT_POLL_S = 0.02


class Wrong(Exception):
    """The product did not do its work: what was measured means nothing."""


class Connection:
    """One HTTP connection, reading no more of the protocol than the product's answers need."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader = reader
        self._writer = writer
        self._headers = f"Host: bench\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"

    async def report(self, task_id: str, body: bytes) -> None:
        """Reports a run of the task. Raises Wrong unless it was accepted."""
        head = f"PUT /api/tasks/{task_id} HTTP/1.1\r\n{self._headers}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await self._reader.readexactly(int(length))
        if not answer.startswith(b"HTTP/1.1 200"):
            raise Wrong(answer.partition(b"\r\n")[0].decode())

    def close(self) -> None:
        """Ends it."""
        self._writer.close()


@asynccontextmanager
async def connected(product: Running) -> AsyncIterator[Connection]:
    """A connection, made as soon as the product listens."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        with suppress(ConnectionRefusedError):
            reader, writer = await asyncio.open_connection("127.0.0.1", product.port)
            break
        if time.monotonic() > give_up:
            raise Wrong("the API does not listen")
        await asyncio.sleep(CONNECT_POLL_S)
    connection = Connection(reader, writer, product.token)
    try:
        yield connection
    finally:
        connection.close()


class Arrivals:
    """What the receivers say they were sent."""

    def __init__(self, receivers: Process) -> None:
        self._receivers = receivers
        self._seen: dict[str, dict[str, int]] = {}
        self._complete: dict[str, asyncio.Future[dict[str, int]]] = {}

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Listens to them for as long as the block runs. Raises Wrong when anything arrives twice."""
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self._listen())
            yield
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
    """Sends every name's event on its way, and the next one only when one of `at_once` has arrived everywhere."""

    async def slot() -> None:
        async with connected(product) as connection:
            for name in names:
                await _one(connection, arrivals, ports, name, measured)

    await asyncio.gather(*(slot() for _ in range(at_once)))


async def _one(connection: Connection, arrivals: Arrivals, ports: Ports, name: str, measured: Measured) -> None:
    started = time.monotonic_ns()
    await connection.report(name, run_body(name, ports))
    measured.accept.append((time.monotonic_ns() - started) / 1e9)
    arrived = await arrivals.of(name)
    for channel, at in arrived.items():
        measured.channels[channel].append((at - started) / 1e9)
    measured.last.append((max(arrived.values()) - started) / 1e9)
