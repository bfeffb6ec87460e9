"""The deliver activity: what Temporal is told, and what it is never told."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.testing import ActivityEnvironment

from activities import deliver
from activities.deliver import Deliver
from activities.sender import Sender
from domain.retry import RetrySchedule
from store.threads import StoreThreads
from tests.activities.scripted_channel import DELIVERED, REJECTED, TRANSIENT, UNCERTAIN, Held, ScriptedChannel, Step
from tests.store.scenes import EMAIL, WEBHOOK, claim, history, load, part, record
from workflows.calls import DeliverInput, DeliverResult


class Bench:
    """One event, and the activity over a scripted channel."""

    def __init__(self, store: StoreThreads, *steps: Step, generation: int = 0) -> None:
        self.database = store.stores.state
        self.event_id = record(self.database, WEBHOOK)
        self.channel = ScriptedChannel(steps=list(steps))
        sender = Sender(store, {"webhook": self.channel}, RetrySchedule(first_delay_s=60), lease_s=30)
        self.activity = Deliver(sender)
        self.order = DeliverInput(self.event_id, part(self.database, self.event_id).delivery_id, generation)

    async def run(self) -> DeliverResult:
        """Runs the activity as a worker does."""
        return await ActivityEnvironment().run(self.activity.run, self.order)

    async def failure(self) -> ApplicationError:
        """The error that the activity ends in."""
        with pytest.raises(ApplicationError) as raised:
            await self.run()
        return raised.value


@pytest.mark.parametrize(
    ("step", "result"),
    [
        (DELIVERED, DeliverResult("completed")),
        (REJECTED, DeliverResult("failed", "http_404")),
        (UNCERTAIN, DeliverResult("uncertain", "no_answer")),
    ],
)
async def test_an_ending_is_a_result(store: StoreThreads, step: Step, result: DeliverResult) -> None:
    assert await Bench(store, step).run() == result


async def test_a_transient_send_names_its_delay_quietly(store: StoreThreads) -> None:
    failure = await Bench(store, TRANSIENT).failure()
    assert (failure.type, failure.non_retryable, failure.category) == (
        "Transient",
        False,
        ApplicationErrorCategory.BENIGN,
    )
    assert failure.next_retry_delay is not None
    assert timedelta(seconds=60) <= failure.next_retry_delay <= timedelta(seconds=72)


async def test_while_another_worker_sends_it_comes_back_when_the_lease_ends(store: StoreThreads) -> None:
    bench = Bench(store)
    claim(bench.database, load(bench.database, bench.order.delivery_id), lease_s=10)
    failure = await bench.failure()
    assert failure.type == "Busy"
    assert failure.next_retry_delay is not None
    assert timedelta(seconds=9) < failure.next_retry_delay < timedelta(seconds=11)


async def test_an_unknown_delivery_fails_for_good(store: StoreThreads) -> None:
    assert await Bench(store, generation=1).run() == DeliverResult("failed", "unknown_delivery")


async def test_a_fault_tells_temporal_its_type_and_no_text(store: StoreThreads) -> None:
    bench = Bench(store)
    bench.channel.unready = [ValueError(f"cannot reach {WEBHOOK.recipient}")]
    failure = await bench.failure()
    assert (failure.type, failure.message) == ("ValueError", "fault while delivering")
    assert failure.__cause__ is None
    assert failure.__suppress_context__


async def test_a_slow_send_heartbeats(store: StoreThreads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "HEARTBEAT_PAUSE_S", 0.02)
    held = Held()
    bench, beats, environment = Bench(store, held), asyncio.Event(), ActivityEnvironment()
    environment.on_heartbeat = lambda *details: beats.set()
    running = asyncio.create_task(environment.run(bench.activity.run, bench.order))
    await asyncio.wait_for(beats.wait(), 5)
    held.go.set()
    assert await running == DeliverResult("completed")


async def test_a_cancelled_activity_answers_with_the_doubt_it_recorded(store: StoreThreads) -> None:
    held = Held()
    bench, environment = Bench(store, held), ActivityEnvironment()
    running = asyncio.create_task(environment.run(bench.activity.run, bench.order))
    await held.begun.wait()
    environment.cancel()
    assert await running == DeliverResult("uncertain", "cancelled")
    assert history(bench.database, bench.event_id).event.status == "uncertain"


async def test_siblings_that_end_together_report_together(store: StoreThreads) -> None:
    first, second = Held(), Held()
    database = store.stores.state
    event_id = record(database, WEBHOOK, EMAIL)
    channels = {
        "webhook": ScriptedChannel(steps=[first]),
        "email": ScriptedChannel(steps=[second], channel="email"),
    }
    activity = Deliver(Sender(store, channels, RetrySchedule(), lease_s=30))
    runs = [
        asyncio.create_task(
            ActivityEnvironment().run(
                activity.run, DeliverInput(event_id, part(database, event_id, name).delivery_id, 0)
            )
        )
        for name in channels
    ]
    await asyncio.gather(first.begun.wait(), second.begun.wait())
    first.go.set()
    second.go.set()
    assert await asyncio.gather(*runs) == [DeliverResult("completed")] * 2
