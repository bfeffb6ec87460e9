"""A loopback TCP listener that knows its open connections and ends every one of them when it stops."""

import asyncio
import contextlib
import socket
import ssl
import struct
from types import TracebackType
from typing import Self


class Listener:
    """Serves each connection with `serve`; subclasses say how. Use as an asynchronous context manager."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.port = 0
        """Where it listens; entered again, it listens there again."""
        self.connections = 0
        """Connections accepted so far."""
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", self.port, ssl=self._tls, backlog=4_096)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from accept to close."""
        raise NotImplementedError

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self.serve(reader, writer)
        finally:
            writer.transport.abort() if self._tls else writer.close()


def reset(writer: asyncio.StreamWriter) -> None:
    """Ends the connection with RST instead of FIN."""
    connected: socket.socket = writer.get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
