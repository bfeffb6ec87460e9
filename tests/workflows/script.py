"""Activities under the names that the process asks for, which answer as a test has written down."""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkerDeploymentVersion
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkerDeploymentConfig, WorkflowRunner

from tests.workflows.deadline import eventually
from workflows import calls
from workflows.calls import DecideInput, DecideResult, DeliverInput, DeliverResult, DeliveryRef, EventInput
from workflows.notification import Notification

COMPLETED = DeliverResult("completed")
FAILED = DeliverResult("failed", "http_404")
UNCERTAIN = DeliverResult("uncertain", "no_answer")
SUPERSEDED = DeliverResult("superseded")

NAMED = WorkerDeploymentConfig(version=WorkerDeploymentVersion("tests", "1"), use_worker_versioning=False)
"""A name for the worker's code, which it would otherwise work out from every loaded module."""

Step = DeliverResult | Exception | Callable[[], Awaitable[DeliverResult]]
Handle = WorkflowHandle[Notification, dict[str, str]]


async def hangs() -> DeliverResult:
    """The step of a worker that vanished: no heartbeat, no answer."""
    await asyncio.Event().wait()
    return COMPLETED


def transient(delay: timedelta) -> ApplicationError:
    """What the deliver activity raises to be asked again after a delay."""
    return ApplicationError("http_500; again later", type="Transient", next_retry_delay=delay)


def ref(delivery_id: str, generation: int = 0) -> DeliveryRef:
    """A delivery whose channel is told from its id."""
    return DeliveryRef(delivery_id, f"channel-{delivery_id}", generation)


def refuse_all(order: DecideInput) -> DecideResult:
    """The answer to decisions that a test does not expect."""
    return DecideResult(accepted=False, reason="status_changed")


@dataclass
class Script:
    """Steps by delivery, the last one repeated; the answer to decisions; and all that was asked."""

    steps: dict[str, list[Step]] = field(default_factory=dict)
    decide: Callable[[DecideInput], DecideResult] = refuse_all
    asked: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By delivery, the generation of each time it was asked for."""
    decisions: list[DecideInput] = field(default_factory=list)

    @activity.defn(name=calls.DELIVER)
    async def deliver(self, order: DeliverInput) -> DeliverResult:
        """Takes the next step of the delivery."""
        number = len(self.asked[order.delivery_id])
        self.asked[order.delivery_id].append(order.generation)
        steps = self.steps.get(order.delivery_id, [COMPLETED])
        step = steps[min(number, len(steps) - 1)]
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, DeliverResult) else await step()

    @activity.defn(name=calls.DECIDE)
    async def decided(self, order: DecideInput) -> DecideResult:
        """Answers the decision."""
        self.decisions.append(order)
        return self.decide(order)


@dataclass
class Stage:
    """One running worker and the client it belongs to."""

    client: Client
    task_queue: str
    script: Script
    patience: timedelta = timedelta(seconds=30)
    """How long a run may take, so that one which never ends fails its test."""

    async def start(self, *refs: DeliveryRef, search_attributes: bool = False, signal: object = None) -> Handle:
        """Starts an event, with a first signal when one is given."""
        event_id = uuid.uuid4().hex
        return await self.client.start_workflow(
            Notification.run,
            EventInput(event_id, list(refs), search_attributes),
            id=event_id,
            task_queue=self.task_queue,
            execution_timeout=self.patience,
            start_signal=calls.RESOLVE if signal else None,
            start_signal_args=[signal] if signal else [],
        )

    async def asked(self, delivery_id: str, times: int) -> None:
        """Returns once the delivery was asked for that often."""

        async def often_enough() -> bool:
            return len(self.script.asked[delivery_id]) >= times

        await eventually(often_enough)


@asynccontextmanager
async def on_stage(
    client: Client, script: Script, runner: WorkflowRunner | None = None, task_queue: str | None = None
) -> AsyncIterator[Stage]:
    """Runs the process over scripted activities, on a queue of its own unless one is given."""
    task_queue = task_queue or uuid.uuid4().hex
    async with Worker(
        client,
        task_queue=task_queue,
        workflows=[Notification],
        activities=[script.deliver, script.decided],
        workflow_runner=runner or UnsandboxedWorkflowRunner(),
        deployment_config=NAMED,
    ):
        yield Stage(client, task_queue, script)
