"""An HTTP receiver on loopback that behaves, or misbehaves, as scripted, and records every byte it read."""

import asyncio
import gzip
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tests.doubles.listener import Listener, reset

HEAD_END = b"\r\n\r\n"


@dataclass
class Received:
    """One request as it came, perhaps cut short."""

    head: bytes = b""
    body: bytes = b""
    complete: bool = False
    """Whether the whole request was read."""

    @property
    def line(self) -> str:
        """Method, target and version."""
        return self.head.split(b"\r\n", 1)[0].decode("latin-1")

    @property
    def path(self) -> str:
        """The target, with its query."""
        return self.line.split(" ")[1]

    @property
    def headers(self) -> dict[str, str]:
        """Names in lower case."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        return {name.lower(): value.strip() for name, value in pairs}


@dataclass
class Visit:
    """One request on one connection, in the hands of a behaviour."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    received: Received = field(default_factory=Received)
    keep_open: bool = False
    """Whether the connection may carry another request after this one."""

    async def read(self) -> None:
        """Reads the whole request, or keeps what came of it and raises."""
        received = self.received
        try:
            received.head += await self.reader.readuntil(HEAD_END)
        except asyncio.IncompleteReadError as cut:
            received.head += cut.partial
            raise
        try:
            received.body = await self.reader.readexactly(int(received.headers.get("content-length", 0)))
        except asyncio.IncompleteReadError as cut:
            received.body = cut.partial
            raise
        received.complete = True

    async def write(self, data: bytes) -> None:
        """Writes raw bytes."""
        self.writer.write(data)
        await self.writer.drain()


Behaviour = Callable[[Visit], Awaitable[None]]


class HttpReceiver(Listener):
    """Serves each request with the next scripted behaviour, and with `default` when the script is at its end."""

    def __init__(self, default: Behaviour | None = None, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.default = default or answer()
        self.script: deque[Behaviour] = deque()
        self.requests: list[Received] = []
        """One per connection, whatever came on it, and one per further request on the same connection."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def then(self, *behaviours: Behaviour) -> None:
        """Adds to the script."""
        self.script.extend(behaviours)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests one after the other, as long as both sides keep the connection."""
        begun = b""
        while True:
            visit = Visit(reader, writer, Received(head=begun))
            self.requests.append(visit.received)
            await self._behaviour()(visit)
            if not visit.keep_open or not (begun := await reader.read(1)):
                return

    def _behaviour(self) -> Behaviour:
        return self.script.popleft() if self.script else self.default


def answer(
    status: int = 200, headers: Mapping[str, str] | None = None, body: bytes = b"", delay_s: float = 0.0
) -> Behaviour:
    """A proper answer, after `delay_s`."""

    async def behave(visit: Visit) -> None:
        await visit.read()
        await asyncio.sleep(delay_s)
        await visit.write(_head(status, {**(headers or {}), "Content-Length": str(len(body))}) + body)
        visit.keep_open = visit.received.headers.get("connection", "").lower() != "close"

    return behave


def redirect(location: str, status: int = 307) -> Behaviour:
    """Asks to send the same request to somewhere else."""
    return answer(status, {"Location": location})


def gzip_bomb(megabytes: int = 50) -> Behaviour:
    """A small body that inflates to `megabytes`."""
    return answer(200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(megabytes * 1_000_000)))


async def close_unread(visit: Visit) -> None:
    """Accepts and closes at once."""


async def reset_unread(visit: Visit) -> None:
    """Accepts and resets at once."""
    reset(visit.writer)


async def never_read(visit: Visit) -> None:
    """Accepts and reads nothing, so that a large request fills the buffers between us."""
    visit.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.Event().wait()


async def read_then_hang(visit: Visit) -> None:
    """Takes the whole request and never answers."""
    await visit.read()
    await asyncio.Event().wait()


async def read_then_close(visit: Visit) -> None:
    """Takes the whole request and closes."""
    await visit.read()


async def read_then_reset(visit: Visit) -> None:
    """Takes the whole request and resets."""
    await visit.read()
    reset(visit.writer)


async def garbage(visit: Visit) -> None:
    """Answers in no known protocol."""
    await visit.read()
    await visit.write(b"SSH-2.0-nothing\r\n\r\n")


async def half_a_status_line(visit: Visit) -> None:
    """Closes within the status line."""
    await visit.read()
    await visit.write(b"HTTP/1.1 20")


def status_then_hang(status: int = 200) -> Behaviour:
    """A complete head that promises a body which never comes."""

    async def behave(visit: Visit) -> None:
        await visit.read()
        await visit.write(_head(status, {"Content-Length": "100"}))
        await asyncio.Event().wait()

    return behave


def truncated(status: int = 200, body: bytes = b"{") -> Behaviour:
    """A body that is shorter than promised."""

    async def behave(visit: Visit) -> None:
        await visit.read()
        await visit.write(_head(status, {"Content-Length": str(len(body) + 100)}) + body)

    return behave


def drip(status: int = 200, every_s: float = 0.05) -> Behaviour:
    """A body that goes on for ever, one byte at a time."""

    async def behave(visit: Visit) -> None:
        await visit.read()
        await visit.write(_head(status, {"Content-Length": "1000000"}))
        while True:
            await visit.write(b".")
            await asyncio.sleep(every_s)

    return behave


def endless(status: int = 200) -> Behaviour:
    """A body that goes on for ever, as fast as it is read."""

    async def behave(visit: Visit) -> None:
        await visit.read()
        await visit.write(_head(status, {"Transfer-Encoding": "chunked"}))
        while True:
            await visit.write(b"1000\r\n" + bytes(4_096) + b"\r\n")

    return behave


def idle_close(after_s: float = 0.05) -> Behaviour:
    """Answers, offers to keep the connection, and closes it after a short idle time."""

    async def behave(visit: Visit) -> None:
        await answer()(visit)
        visit.keep_open = False
        await asyncio.sleep(after_s)

    return behave


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("latin-1") + HEAD_END
