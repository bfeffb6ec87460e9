"""The send protocol: prepare, commit `sending`, send once, commit the outcome. It knows store and channels only.

The order is the promise. Whatever fails before the claim has certainly not been sent; whatever happens after it leaves
a committed attempt behind, so that nobody ever sends a native message again without knowing that it may have gone out.
"""

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from activities.lease import Lease
from channels.port import Channel, Message, Prepared
from domain.errors import NotFound, NotSendable, StoreFault, StoreUnavailable
from domain.event import Snapshot
from domain.lifecycle import Status
from domain.outcome import Outcome, OutcomeKind, Scope, Stage, not_sent
from domain.retry import RetrySchedule
from store import deliveries
from store.clock import rfc3339
from store.deliveries import Claim, Loaded, Result, Verdict
from store.threads import StoreThreads

LOG = logging.getLogger("tidings.sender")

MAX_READS = 20
"""How often a delivery that keeps changing under us is read again before Temporal is asked to come back later."""

CONTENDED = Verdict(Status.PROCESSING, "contended", 1.0)

NOT_RECORDABLE = "not_recordable"
"""Code of an outcome whose details the database refused: what matters of it is recorded all the same."""

SETTLE_PATIENCE_S = 60.0
"""How long a known outcome is offered to a database that does not answer; past the lease it is kept as evidence."""


@dataclass(frozen=True, slots=True)
class Order:
    """One delivery under the generation the caller knows."""

    event_id: str
    delivery_id: str
    generation: int


class Sender:
    """Sends deliveries. One instance per process, used by many activities at once."""

    def __init__(
        self, store: StoreThreads, channels: Mapping[str, Channel], schedule: RetrySchedule, *, lease_s: float
    ) -> None:
        self._store = store
        self._channels = channels
        self._schedule = schedule
        self._lease_s = lease_s

    async def deliver(self, order: Order) -> Verdict | None:
        """Moves a delivery as far as it can go now; None when a later decision has superseded this generation.

        `pending` and `processing` mean: come back after `delay_s`. Raises StoreUnavailable.
        """
        for _ in range(MAX_READS):
            seen = await self._load(order)
            if seen is None or seen.generation < order.generation:
                LOG.error("unknown_delivery", extra={"event_id": order.event_id})
                return Verdict(Status.FAILED, "unknown_delivery")
            if seen.generation > order.generation:
                return None
            if verdict := await self._step(seen):
                return verdict
        return CONTENDED

    async def _load(self, order: Order) -> Loaded | None:
        try:
            return await self._store.of_event(order.event_id, partial(deliveries.load, delivery_id=order.delivery_id))
        except NotFound:
            return None

    async def _step(self, seen: Loaded) -> Verdict | None:
        """One move from what was read; None when it must be read again."""
        if seen.status is Status.PROCESSING:
            return await self._recover(seen)
        if seen.status is not Status.PENDING:
            return Verdict(seen.status, seen.last_error_code)
        if seen.unwanted_code is not None:
            skip = partial(deliveries.skip_waiting, event_id=seen.event_id, code=seen.unwanted_code)
            return await self._store.of_event(seen.event_id, skip)
        if seen.wait_s > 0:
            return Verdict(Status.PENDING, seen.last_error_code, seen.wait_s)
        channel = self._channels.get(seen.channel)
        if channel is None:
            missing = not_sent("channel_not_configured", scope=Scope.CONFIG, permanent=True)
            return await self._refuse(seen, missing, native=True)
        try:
            prepared = await channel.prepare(_message(seen))
        except NotSendable as refused:
            return await self._refuse(seen, refused.outcome, native=channel.native)
        return await self._send(seen, channel, prepared)

    async def _send(self, seen: Loaded, channel: Channel, prepared: Prepared) -> Verdict | None:
        token = uuid.uuid4().hex
        wish = Claim(
            seen.event_id,
            seen.delivery_id,
            seen.generation,
            seen.total_attempts + 1,
            token,
            self._lease_s,
            channel.provider,
            prepared.payload_hash,
        )
        lease = Lease(self._store, wish)
        if not await lease.take():
            return None
        started = time.monotonic()
        try:
            outcome = await self._call(lease, prepared)
        except asyncio.CancelledError:
            # Shutdown or a timeout of ours: the bytes may have left, so the doubt is written before we go.
            outcome = Outcome(OutcomeKind.UNCERTAIN, "cancelled", Stage.BODY)
        verdict = await _undisturbed(self._settle(self._result(seen, token, outcome, native=channel.native)))
        _log(seen, channel, outcome, verdict, time.monotonic() - started)
        return verdict

    async def _call(self, lease: Lease, prepared: Prepared) -> Outcome:
        """The one call of the provider, made only while the lease certainly still holds."""
        if lease.overdue():
            return not_sent("lease_overdue")
        async with lease.kept():
            try:
                return await prepared.send()
            except Exception as fault:  # a bug in an adapter: nobody knows what left us
                LOG.error("adapter_fault", extra={"error_type": type(fault).__name__})
                return Outcome(OutcomeKind.UNCERTAIN, "adapter_fault", Stage.BODY)

    async def _settle(self, result: Result) -> Verdict:
        """Writes the outcome, offering it again while the database is away: it is the only copy of what happened."""
        give_up = time.monotonic() + SETTLE_PATIENCE_S
        while True:
            try:
                return await self._store.of_event(result.event_id, partial(deliveries.settle, result=result))
            except StoreFault:
                if result.outcome.code == NOT_RECORDABLE:
                    raise
                plain = Outcome(result.outcome.kind, NOT_RECORDABLE, result.outcome.stage)
                result = replace(result, outcome=plain)
            except StoreUnavailable:
                if time.monotonic() > give_up:
                    raise
                await asyncio.sleep(random.uniform(0.2, 0.8))

    async def _recover(self, seen: Loaded) -> Verdict | None:
        channel = self._channels.get(seen.channel)
        recover = partial(
            deliveries.recover,
            seen=seen,
            native=channel.native if channel else True,
            max_attempts=self._schedule.max_attempts,
        )
        verdict = await self._store.of_event(seen.event_id, recover)
        if verdict and verdict.status is not Status.PROCESSING:
            about = {"event_id": seen.event_id, "delivery_id": seen.delivery_id, "channel": seen.channel}
            LOG.warning("sender_lost", extra={**about, "code": verdict.code, "status": verdict.status.value})
        return None if verdict and verdict.status is Status.PENDING else verdict

    async def _refuse(self, seen: Loaded, outcome: Outcome, *, native: bool) -> Verdict | None:
        result = self._result(seen, uuid.uuid4().hex, outcome, native=native)
        return await self._store.of_event(seen.event_id, partial(deliveries.refuse, seen=seen, result=result))

    def _result(self, seen: Loaded, token: str, outcome: Outcome, *, native: bool) -> Result:
        attempts = seen.cycle_attempts + 1
        delay_s = self._schedule.delay_s(attempts, outcome.retry_after_s, random.random())
        return Result(seen.event_id, seen.delivery_id, token, outcome, native, self._schedule.max_attempts, delay_s)


async def _undisturbed(settling: Coroutine[Any, Any, Verdict]) -> Verdict:
    """Finishes settling although this task is cancelled: what happened is known here and nowhere else yet."""
    task = asyncio.create_task(settling)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise


def _message(seen: Loaded) -> Message:
    snapshot = Snapshot.from_json(seen.snapshot)
    return Message(
        event_id=seen.event_id,
        tenant=seen.tenant,
        delivery_id=seen.delivery_id,
        kind=seen.kind.value,
        occurred_at=rfc3339(seen.created_at) or "",
        destination=seen.destination.decode(),
        secret_ref=seen.secret_ref,
        brand=snapshot.brand,
        title=snapshot.title,
        text=snapshot.text,
        data=snapshot.data,
    )


def _log(seen: Loaded, channel: Channel, outcome: Outcome, verdict: Verdict, seconds: float) -> None:
    LOG.info(
        "attempt",
        extra={
            "event_id": seen.event_id,
            "delivery_id": seen.delivery_id,
            "channel": seen.channel,
            "provider": channel.provider,
            "attempt": seen.total_attempts + 1,
            "outcome": outcome.kind.value,
            "code": outcome.code,
            "status": verdict.status.value,
            "fenced": verdict.fenced,
            "latency_ms": round(seconds * 1_000),
        },
    )
