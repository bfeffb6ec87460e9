"""The relay: carries intents from the outbox to Temporal, and sweeps for what was lost on the way."""

import asyncio
import logging
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from temporalio.client import Client
from temporalio.common import (
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from domain.errors import StoreUnavailable
from domain.identity import digest
from settings import RelaySettings
from store import intents, watch
from store.database import Database
from store.intents import Action, Intent
from store.threads import StoreThreads
from workflows import calls
from workflows.calls import DeliveryRef, EventInput

LOG = logging.getLogger("tidings.relay")

RPC_TIMEOUT = timedelta(seconds=10)
UNREACHABLE_PAUSE_S = 1.0
"""Pause of the whole relay after Temporal did not answer; intents lose nothing by waiting."""
MAX_POISON_DELAY_S = 300.0
POLL_GROWTH = 1.2
"""How fast polling slows down when nothing comes: from busy to idle in about two seconds."""

_ACTIONS = frozenset(Action)

_UNREACHABLE = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.UNKNOWN,
        RPCStatusCode.INTERNAL,
        RPCStatusCode.NOT_FOUND,  # the namespace is not there yet: a server that has just been set up anew
    }
)


@dataclass
class _Round:
    """What became of one batch."""

    carried: list[int] = field(default_factory=list)
    unreachable: list[int] = field(default_factory=list)
    refused: list[Intent] = field(default_factory=list)


class Relay:
    """One per worker process. Several may run against one database: leases keep them apart."""

    def __init__(self, client: Client, store: StoreThreads, settings: RelaySettings, *, task_queue: str) -> None:
        self._client = client
        self._store = store
        self._settings = settings
        self._task_queue = task_queue
        self._search_attributes = True
        self._work = {database: asyncio.Event() for database in store.stores.each()}
        self._loop = asyncio.get_running_loop()

    def without_search_attributes(self) -> None:
        """Starts workflows without search attributes, as for a namespace that does not know them."""
        self._search_attributes = False

    def nudge(self) -> None:
        """Says that an intent was committed; callable from any thread, costs nothing when the relay is busy."""
        for work in self._work.values():
            if not work.is_set() and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(work.set)

    async def run(self, stop: asyncio.Event) -> None:
        """Relays and sweeps until `stop` is set; what it has accepted by then is finished first."""
        async with asyncio.TaskGroup() as tasks:
            for database in self._store.stores.each():
                tasks.create_task(self._relay(database, stop))
                tasks.create_task(self._sweep(database, stop))

    async def _relay(self, database: Database, stop: asyncio.Event) -> None:
        pause_s = self._settings.busy_poll_s
        while not stop.is_set():
            self._work[database].clear()
            try:
                found, reached = await self._carry_batch(database)
            except StoreUnavailable:
                found, reached = 0, False
                LOG.warning("store_unavailable")
            if not reached:
                await _pause(UNREACHABLE_PAUSE_S, stop)
            elif found:
                pause_s = self._settings.busy_poll_s
            else:
                await _pause(pause_s, stop, self._work[database])
                pause_s = min(pause_s * POLL_GROWTH, self._settings.idle_poll_s)

    async def _carry_batch(self, database: Database) -> tuple[int, bool]:
        """Carries one batch; how many intents it held, and whether Temporal could be reached."""
        token = uuid.uuid4().hex
        settings = self._settings
        claim = partial(intents.claim, token=token, lease_s=settings.lease_s, limit=settings.batch)
        batch = await self._store.run(database, claim)
        if not batch:
            return 0, True
        result = _Round()
        await asyncio.gather(*(self._carry(intent, result) for intent in batch))
        await self._finish(database, token, result)
        return len(batch), not result.unreachable

    async def _finish(self, database: Database, token: str, result: _Round) -> None:
        if result.carried:
            await self._store.run(database, partial(intents.done, token=token, intent_ids=result.carried))
        if result.unreachable:
            give_back = partial(intents.release, token=token, intent_ids=result.unreachable, delay_s=0.0)
            await self._store.run(database, give_back)
        for intent in result.refused:
            delay_s = min(MAX_POISON_DELAY_S, 2.0**intent.tries)
            give_back = partial(intents.release, token=token, intent_ids=[intent.intent_id], delay_s=delay_s)
            await self._store.run(database, give_back)

    async def _carry(self, intent: Intent, result: _Round) -> None:
        if intent.action not in _ACTIONS:
            LOG.warning("unknown_action", extra={"event_id": intent.event_id})
            result.refused.append(intent)
            return
        try:
            await self._ask_temporal(intent)
        except WorkflowAlreadyStartedError:
            pass  # the acknowledgement of an earlier start was lost: it did happen
        except RPCError as error:
            if error.status in _UNREACHABLE:
                result.unreachable.append(intent.intent_id)
            else:
                LOG.error("start_refused", extra={"event_id": intent.event_id, "code": error.status.name})
                result.refused.append(intent)
            return
        except RuntimeError:  # what the client raises while it has no connection at all
            result.unreachable.append(intent.intent_id)
            return
        result.carried.append(intent.intent_id)

    async def _ask_temporal(self, intent: Intent) -> None:
        if self._search_attributes:
            try:
                return await self._start(intent, search_attributes=True)
            except RPCError as error:
                if (
                    error.status is not RPCStatusCode.INVALID_ARGUMENT
                    or "search attribute" not in error.message.lower()
                ):
                    raise
                LOG.warning("search_attributes_not_registered")
                self._search_attributes = False
        await self._start(intent, search_attributes=False)

    async def _start(self, intent: Intent, *, search_attributes: bool) -> None:
        """Starts the event's workflow, or, for a decision, signals it and starts it when it is not there.

        A first start refuses a closed run of the same id. Every other start replaces one: the store, whose claim is a
        compare-and-set on status and generation, is what keeps a second run from sending anything again.
        """
        refs = [DeliveryRef(d.delivery_id, d.channel, d.generation) for d in intent.deliveries]
        first = intent.action == Action.START
        decide = intent.action == Action.DECIDE
        await self._client.start_workflow(
            calls.WORKFLOW,
            EventInput(intent.event_id, refs, search_attributes),
            id=intent.event_id,
            task_queue=self._task_queue,
            id_reuse_policy=(
                WorkflowIDReusePolicy.REJECT_DUPLICATE if first else WorkflowIDReusePolicy.ALLOW_DUPLICATE
            ),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal=calls.RESOLVE if decide else None,
            start_signal_args=[{"decision_id": intent.decision_id}] if decide else [],
            search_attributes=_attributes(intent) if search_attributes else None,
            static_summary=f"{intent.kind}: {', '.join(ref.channel for ref in refs)}",
            request_eager_start=not decide,
            rpc_timeout=RPC_TIMEOUT,
        )

    async def _sweep(self, database: Database, stop: asyncio.Event) -> None:
        """Queues restarts for stale events, one bounded round after another, never two at once."""
        settings = self._settings
        queue = partial(watch.queue_stale, stale_s=settings.stale_after_s, limit=settings.sweep_batch)
        while not stop.is_set():
            try:
                if found := await self._store.run(database, queue):
                    LOG.info("sweep", extra={"restarts": found})
                    self.nudge()
            except StoreUnavailable:
                LOG.warning("store_unavailable")
            await _pause(settings.sweep_every_s, stop)


async def _pause(seconds: float, *events: asyncio.Event) -> None:
    """Waits, unless one of the events comes first."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _attributes(intent: Intent) -> TypedSearchAttributes:
    """The tenant appears as its digest: search attributes are never encrypted."""
    return TypedSearchAttributes(
        [
            SearchAttributePair(calls.TENANT, digest(intent.tenant)),
            SearchAttributePair(calls.KIND, intent.kind),
            SearchAttributePair(calls.STATE, calls.STATE_OPEN),
        ]
    )
