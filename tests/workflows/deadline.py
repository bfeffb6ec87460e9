"""Waiting for what must come about, with a deadline instead of a guess."""

import asyncio
import time
from collections.abc import Awaitable, Callable


async def eventually(holds: Callable[[], Awaitable[bool]], *, within_s: float = 20.0) -> None:
    """Returns once it holds; fails when it has not come about in time."""
    deadline = time.monotonic() + within_s
    while not await holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.02)
