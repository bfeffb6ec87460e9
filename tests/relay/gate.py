"""A gate on the way to a server: open, bytes pass; shut, they wait, as when a network hangs."""

import asyncio
import contextlib

from tests.doubles.listener import Listener


class Gate(Listener):
    """Passes connections on to an address. Use as an asynchronous context manager."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._host, self._port = address.split(":")
        self._open_wide = asyncio.Event()
        self._open_wide.set()
        self.waiting = asyncio.Event()
        """Set once bytes wait at the gate."""

    @property
    def address(self) -> str:
        """Where to connect instead."""
        return f"127.0.0.1:{self.port}"

    def shut(self) -> None:
        """Holds everything that wants to get to the server."""
        self.waiting.clear()
        self._open_wide.clear()

    def open(self) -> None:
        """Lets everything pass."""
        self._open_wide.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Joins both ends until one of them closes."""
        there, here = await asyncio.open_connection(self._host, int(self._port))
        ways = [asyncio.create_task(self._inward(reader, here)), asyncio.create_task(_pass(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            here.close()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _inward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65_536):
            if not self._open_wide.is_set():
                self.waiting.set()
                await self._open_wide.wait()
            writer.write(chunk)
            await writer.drain()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
