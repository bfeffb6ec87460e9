"""The activities of one event that run in this process, so that those ending together are reported together.

Each separate report wakes the workflow once, which costs three history events and much of its processor time.
The outcome is committed before anybody waits here, so the wait can delay nothing but that report.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

LINGER_S = 0.25
"""Longest wait for a sibling that is still sending."""


class Company:
    """The activities of one event that are running now."""

    def __init__(self) -> None:
        self.running = 0
        self.waiting = 0
        self._all_here = asyncio.Event()

    async def finish_together(self) -> None:
        """Returns when every running sibling has called this too, or after `LINGER_S`."""
        all_here = self._all_here
        self.waiting += 1
        self.check()
        try:
            async with asyncio.timeout(LINGER_S):
                await all_here.wait()
        except TimeoutError:
            pass
        finally:
            self.waiting -= 1

    def check(self) -> None:
        """Lets the waiting go when nobody else is still sending."""
        if self.waiting >= self.running:
            # Not at once: the last to come would report first, and the server would have woken the workflow before
            # the others' reports were on their way.
            asyncio.get_running_loop().call_soon(self._all_here.set)
            self._all_here = asyncio.Event()


class Siblings:
    """Every event that has activities running here."""

    def __init__(self) -> None:
        self._companies: dict[str, Company] = {}

    @contextmanager
    def of(self, event_id: str) -> Iterator[Company]:
        """Counts one running activity of the event in for as long as the block runs."""
        company = self._companies.setdefault(event_id, Company())
        company.running += 1
        try:
            yield company
        finally:
            company.running -= 1
            company.check()
            if company.running == 0:
                del self._companies[event_id]
