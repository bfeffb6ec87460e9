"""Runs a server of this folder in a thread of its own, for tests and benchmarks that are not asynchronous."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

Server = TypeVar("Server")

START_TIMEOUT_S = 10.0


@contextmanager
def in_thread(server: AbstractAsyncContextManager[Server]) -> Iterator[Server]:
    """`with in_thread(HttpReceiver()) as receiver:` serves until the block ends; what it records may be read."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        running = asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(START_TIMEOUT_S)
        try:
            yield running
        finally:
            asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(START_TIMEOUT_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(START_TIMEOUT_S)
        loop.close()
