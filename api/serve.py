"""Serving the application inside a running event loop, until told to stop."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

START_POLL_S = 0.005
GRACE_S = 30
"""How long requests under way may take once a stop was asked for."""


class _Server(uvicorn.Server):
    """Leaves signals to the process, which has its own order of stopping."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


async def serve(
    app: FastAPI, host: str, port: int, stop: asyncio.Event, *, listening: Callable[[], None] = lambda: None
) -> None:
    """Serves until `stop` is set, then finishes what it has accepted. `listening` is called once requests are answered.

    Raises OSError when it cannot listen.
    """
    listener = socket.create_server((host, port), family=_family(host), backlog=2_048)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=GRACE_S, server_header=False, loop="none"
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stop.wait())
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(START_POLL_S)
        listening()
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        stopping.cancel()
        await serving


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
