"""A worker's claim on one delivery: taken before the first byte, kept while a slow provider answers."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from activities.ticker import ticking
from domain.errors import StoreUnavailable
from store import deliveries
from store.deliveries import Claim
from store.threads import StoreThreads


class Lease:
    """The lease of one attempt. The database's clock decides whether it holds; ours only decides not to try."""

    def __init__(self, store: StoreThreads, claim: Claim) -> None:
        self._store = store
        self._claim = claim
        self._asked_at = 0.0

    async def take(self) -> bool:
        """Commits `sending`; False when somebody else was first."""
        self._asked_at = _awake_or_asleep()
        return await self._store.of_event(self._claim.event_id, partial(deliveries.claim, wish=self._claim))

    def overdue(self) -> bool:
        """Whether this process was stopped so long since asking that a successor may hold the delivery."""
        return _awake_or_asleep() - self._asked_at > self._claim.lease_s * 0.8

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Renews the lease, a third of it at a time, for as long as the block runs."""
        renewals: set[asyncio.Task[None]] = set()

        def renew() -> None:
            task = asyncio.create_task(self._renew())
            renewals.add(task)
            task.add_done_callback(renewals.discard)

        try:
            with ticking(self._claim.lease_s / 3, renew):
                yield
        finally:
            if renewals:
                await asyncio.wait(renewals)

    async def _renew(self) -> None:
        claim = self._claim
        renew = partial(deliveries.renew, delivery_id=claim.delivery_id, token=claim.token, lease_s=claim.lease_s)
        try:
            await self._store.of_event(claim.event_id, renew)
        except StoreUnavailable:
            return  # the lease runs out by itself; settling will find out


def _awake_or_asleep() -> float:
    """Seconds on a clock that also runs while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
