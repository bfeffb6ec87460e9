"""A relay over a real database and a real Temporal server, with or without a worker that sends."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Self

from sqlalchemy import func, select
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.decide import Decide
from activities.deliver import Deliver
from activities.sender import Sender
from domain.decision import Decision, Door, Verdict
from domain.lifecycle import Status
from domain.retry import RetrySchedule
from relay import Relay
from settings import RelaySettings
from store import decisions
from store.database import Database, Stores
from store.schema import intents
from store.threads import StoreThreads
from tests.activities.scripted_channel import ScriptedChannel
from tests.store.scenes import WEBHOOK, history, record
from tests.workflows.deadline import eventually
from tests.workflows.script import NAMED
from workflows.notification import Notification

QUICK = RelaySettings(idle_poll_s=0.05, sweep_every_s=3_600)


class Post:
    """A relay, its store and what became of the events."""

    def __init__(
        self, client: Client, stores: Stores, settings: RelaySettings = QUICK, task_queue: str | None = None
    ) -> None:
        self.client = client
        self.store = StoreThreads(stores, 4)
        self.task_queue = task_queue or uuid.uuid4().hex
        self.relay = Relay(client, self.store, settings, task_queue=self.task_queue)
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        self.store.close()

    @property
    def database(self) -> Database:
        """Where the tests' events live."""
        return self.store.stores.state

    def start(self) -> None:
        """Begins to relay."""
        self._running = asyncio.create_task(self.relay.run(self._stop))

    def ask_to_stop(self) -> asyncio.Task[None]:
        """Begins to stop; done when the relay has ended."""
        assert self._running is not None
        self._stop.set()
        return self._running

    async def stop(self) -> None:
        """Stops, if it was ever started."""
        if self._running is not None:
            await self.ask_to_stop()

    @asynccontextmanager
    async def sending(self, channel: ScriptedChannel) -> AsyncIterator[None]:
        """Runs a worker with the real process and the real activities over one channel."""
        sender = Sender(self.store, {channel.channel: channel}, RetrySchedule(first_delay_s=0.01), lease_s=30)
        async with Worker(
            self.client,
            task_queue=self.task_queue,
            workflows=[Notification],
            activities=[Deliver(sender).run, Decide(self.store).run],
            workflow_runner=UnsandboxedWorkflowRunner(),
            deployment_config=NAMED,
        ):
            yield

    def record(self, task: str = "") -> str:
        """Records an event with one webhook; a task of its own unless one is given."""
        return record(self.database, WEBHOOK, task=task or uuid.uuid4().hex)

    def decide(self, event_id: str, verdict: Verdict, expected: Status) -> None:
        """What the API does with an operator's decision: record it, with an intent to carry it."""
        decision = Decision(
            uuid.uuid4().hex, event_id, verdict, expected, "ada", "", Door.API, None, allow_uncertain=True
        )
        self.database.write(partial(decisions.apply, decision=decision))

    def queued(self) -> int:
        """Intents that were not carried yet."""
        return self.database.read(lambda connection: connection.scalar(select(func.count()).select_from(intents)) or 0)

    async def carried(self) -> None:
        """Returns once no intent is left."""

        async def empty() -> bool:
            return self.queued() == 0

        await eventually(empty)

    async def reaches(self, event_id: str, status: Status) -> None:
        """Returns once the event has the status."""

        async def reached() -> bool:
            return history(self.database, event_id).event.status is status

        await eventually(reached)

    async def run_of(self, event_id: str) -> WorkflowExecutionDescription | None:
        """The event's newest run; None when Temporal knows none."""
        try:
            return await self.client.get_workflow_handle(event_id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise

    async def run_is(self, event_id: str, status: WorkflowExecutionStatus) -> None:
        """Returns once the event's newest run has the status."""

        async def reached() -> bool:
            run = await self.run_of(event_id)
            return run is not None and run.status is status

        await eventually(reached)
