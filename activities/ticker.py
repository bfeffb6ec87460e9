"""A callback at a fixed pause while a block runs: heartbeats and lease renewals, without a task of their own."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Ticker:
    def __init__(self, pause_s: float, tick: Callable[[], None]) -> None:
        self._pause_s = pause_s
        self._tick = tick
        self._arm()

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._run)

    def _run(self) -> None:
        self._tick()
        self._arm()

    def stop(self) -> None:
        self._timer.cancel()


@contextmanager
def ticking(pause_s: float, tick: Callable[[], None]) -> Iterator[None]:
    """Calls `tick` every `pause_s` seconds, first after one pause; a quick block never sees a call."""
    ticker = _Ticker(pause_s, tick)
    try:
        yield
    finally:
        ticker.stop()
