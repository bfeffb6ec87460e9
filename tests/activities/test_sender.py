"""The send protocol over a real database: every way a send can go, and what is left on record."""

import asyncio
import time
from pathlib import Path

import pytest

from activities import lease
from activities.sender import Order, Sender
from channels.port import Channel
from domain.lifecycle import Status
from domain.outcome import Outcome
from domain.retry import RetrySchedule
from store.database import Database
from store.deliveries import Verdict
from store.outbox import AttemptView
from store.threads import StoreThreads
from tests.activities.scripted_channel import (
    DELIVERED,
    REJECTED,
    TRANSIENT,
    UNCERTAIN,
    Held,
    ScriptedChannel,
    unready,
)
from tests.store.scenes import WEBHOOK, claim, history, load, part, record
from tests.store.scenes import send as attempt


def sender(store: StoreThreads, *channels: Channel, lease_s: float = 30.0, first_delay_s: float = 60.0) -> Sender:
    schedule = RetrySchedule(first_delay_s=first_delay_s)
    return Sender(store, {channel.channel: channel for channel in channels}, schedule, lease_s=lease_s)


class Scene:
    """One event with one delivery."""

    def __init__(self, store: StoreThreads) -> None:
        self.database: Database = store.stores.state
        self.event_id = record(self.database, WEBHOOK)
        self.order = Order(self.event_id, part(self.database, self.event_id).delivery_id, 0)

    @property
    def status(self) -> Status:
        return part(self.database, self.event_id).status

    @property
    def attempts(self) -> tuple[AttemptView, ...]:
        return history(self.database, self.event_id).attempts


@pytest.fixture
def scene(store: StoreThreads) -> Scene:
    """An event that nobody has sent yet."""
    return Scene(store)


async def verdict_of(sender: Sender, scene: Scene) -> Verdict:
    verdict = await sender.deliver(scene.order)
    assert verdict is not None
    return verdict


@pytest.mark.parametrize(
    ("outcome", "native", "status"),
    [
        (DELIVERED, True, Status.COMPLETED),
        (REJECTED, True, Status.FAILED),
        (TRANSIENT, True, Status.PENDING),
        (UNCERTAIN, True, Status.UNCERTAIN),
        (UNCERTAIN, False, Status.PENDING),
    ],
)
async def test_an_outcome_is_settled_as_it_was_told(
    store: StoreThreads, scene: Scene, outcome: Outcome, native: bool, status: Status
) -> None:
    channel = ScriptedChannel(native=native, steps=[outcome])
    verdict = await verdict_of(sender(store, channel), scene)
    assert verdict.status is scene.status is status
    assert verdict.code == (None if outcome is DELIVERED else outcome.code)
    (tried,) = scene.attempts
    assert (tried.outcome, tried.provider, tried.ended_at is not None) == (outcome.kind, "scripted", True)
    assert len(channel.sent) == 1


async def test_what_is_sent_is_the_frozen_event(store: StoreThreads, scene: Scene) -> None:
    channel = ScriptedChannel(steps=[TRANSIENT, DELIVERED])
    quick = sender(store, channel, first_delay_s=0.001)
    await verdict_of(quick, scene)
    await asyncio.sleep(0.01)  # the delay that the store decided
    assert (await verdict_of(quick, scene)).status is Status.COMPLETED
    first, second = channel.sent
    assert first == second
    assert (first.event_id, first.destination, first.brand) == (scene.event_id, WEBHOOK.recipient, "Brand")


async def test_a_delay_is_kept_to(store: StoreThreads, scene: Scene) -> None:
    channel = ScriptedChannel(steps=[TRANSIENT])
    patient = sender(store, channel)
    assert (await verdict_of(patient, scene)).delay_s >= 60
    again = await verdict_of(patient, scene)
    assert (again.status, again.code, len(channel.sent)) == (Status.PENDING, "http_500", 1)
    assert 50 < again.delay_s <= 72


async def test_a_channel_that_is_not_configured_fails(store: StoreThreads, scene: Scene) -> None:
    verdict = await verdict_of(sender(store), scene)
    assert (verdict.status, verdict.code) == (Status.FAILED, "channel_not_configured")
    (tried,) = scene.attempts
    assert (tried.stage, tried.status_after) == ("prepare", "failed")


@pytest.mark.parametrize(("permanent", "status"), [(True, Status.FAILED), (False, Status.PENDING)])
async def test_what_cannot_be_prepared_is_not_sent(
    store: StoreThreads, scene: Scene, permanent: bool, status: Status
) -> None:
    channel = ScriptedChannel(unready=[unready("secret_missing", permanent=permanent)])
    verdict = await verdict_of(sender(store, channel), scene)
    assert (verdict.status, verdict.code, scene.status) == (status, "secret_missing", status)
    assert channel.sent == []


async def test_a_fault_while_preparing_leaves_the_delivery_open(store: StoreThreads, scene: Scene) -> None:
    channel = ScriptedChannel(unready=[ValueError("a bug")])
    with pytest.raises(ValueError, match="a bug"):
        await sender(store, channel).deliver(scene.order)
    assert (scene.status, scene.attempts, channel.sent) == (Status.PENDING, (), [])


@pytest.mark.parametrize(("native", "status"), [(True, Status.UNCERTAIN), (False, Status.PENDING)])
async def test_a_fault_while_sending_is_a_doubt(
    store: StoreThreads, scene: Scene, native: bool, status: Status
) -> None:
    channel = ScriptedChannel(native=native, steps=[ValueError("a bug")])
    verdict = await verdict_of(sender(store, channel), scene)
    assert (verdict.status, verdict.code) == (status, "adapter_fault")


async def test_sending_is_committed_before_the_first_byte(store: StoreThreads, scene: Scene) -> None:
    held = Held()
    sending = asyncio.create_task(sender(store, ScriptedChannel(steps=[held])).deliver(scene.order))
    await held.begun.wait()
    (tried,) = scene.attempts
    assert (scene.status, tried.outcome, tried.ended_at) == (Status.PROCESSING, None, None)
    held.go.set()
    verdict = await sending
    assert verdict is not None
    assert verdict.status is Status.COMPLETED


@pytest.mark.parametrize(("native", "status"), [(True, Status.UNCERTAIN), (False, Status.PENDING)])
async def test_a_send_that_is_cancelled_leaves_its_doubt_on_record(
    store: StoreThreads, scene: Scene, native: bool, status: Status
) -> None:
    held = Held()
    sending = asyncio.create_task(sender(store, ScriptedChannel(native=native, steps=[held])).deliver(scene.order))
    await held.begun.wait()
    sending.cancel()
    verdict = await sending
    assert verdict is not None
    assert (verdict.status, verdict.code, scene.status) == (status, "cancelled", status)


async def test_a_known_outcome_outlives_a_cancellation(store: StoreThreads, scene: Scene, tmp_path: Path) -> None:
    away = Away(tmp_path)
    sending = asyncio.create_task(sender(store, ScriptedChannel(steps=[away.while_sending])).deliver(scene.order))
    await away.begun.wait()
    await asyncio.sleep(0.05)  # long enough to be offering the outcome to a database that is not there
    sending.cancel()
    away.come_back()
    verdict = await sending
    assert verdict is not None
    assert verdict.status is scene.status is Status.COMPLETED


class Away:
    """The database file, moved from under its connection: reading still works, no commit does."""

    def __init__(self, directory: Path) -> None:
        self._file, self._elsewhere = directory / "store.db", directory / "elsewhere.db"
        self.begun = asyncio.Event()

    async def while_sending(self) -> Outcome:
        self._file.rename(self._elsewhere)
        self.begun.set()
        return DELIVERED

    def come_back(self) -> None:
        self._elsewhere.rename(self._file)


async def test_an_outcome_is_kept_until_the_database_is_back(store: StoreThreads, scene: Scene, tmp_path: Path) -> None:
    away = Away(tmp_path)
    channel = ScriptedChannel(steps=[away.while_sending])
    sending = asyncio.create_task(sender(store, channel).deliver(scene.order))
    await away.begun.wait()
    done, _ = await asyncio.wait([sending], timeout=0.2)
    assert not done
    away.come_back()
    verdict = await sending
    assert verdict is not None
    assert verdict.status is scene.status is Status.COMPLETED
    assert (len(channel.sent), len(scene.attempts)) == (1, 1)


async def test_a_slow_send_keeps_its_lease(store: StoreThreads, scene: Scene) -> None:
    held = Held()
    channel = ScriptedChannel(steps=[held])
    sending = asyncio.create_task(sender(store, channel, lease_s=0.3).deliver(scene.order))
    await held.begun.wait()
    await asyncio.sleep(0.8)  # more than two leases
    busy = await verdict_of(sender(store, channel), scene)
    assert busy.status is Status.PROCESSING
    assert 0 < busy.delay_s <= 0.3
    held.go.set()
    verdict = await sending
    assert verdict is not None
    assert (verdict.status, verdict.fenced, len(channel.sent)) == (Status.COMPLETED, False, 1)


async def test_a_process_that_was_stopped_past_its_lease_sends_nothing(
    store: StoreThreads, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing but the clock that runs while a machine is suspended is replaced: it jumps after the claim was asked for.
    times = iter([100.0, 125.0])
    monkeypatch.setattr(lease, "_awake_or_asleep", lambda: next(times))
    channel = ScriptedChannel()
    verdict = await verdict_of(sender(store, channel, lease_s=30.0), scene)
    assert (verdict.status, verdict.code, channel.sent) == (Status.PENDING, "lease_overdue", [])


@pytest.mark.parametrize(("native", "left"), [(True, Status.UNCERTAIN), (False, Status.COMPLETED)])
async def test_a_late_result_is_evidence_and_no_more(
    store: StoreThreads, scene: Scene, native: bool, left: Status
) -> None:
    async def paused_while_a_successor_looks() -> Outcome:
        time.sleep(0.15)  # the whole process stands still, so nothing renews the lease
        await successor.deliver(scene.order)
        return REJECTED

    channel = ScriptedChannel(native=native, steps=[paused_while_a_successor_looks, DELIVERED])
    successor = sender(store, channel)
    late = await verdict_of(sender(store, channel, lease_s=0.1), scene)
    assert late.fenced
    assert scene.status is late.status is left
    first = scene.attempts[0]
    assert (first.outcome, first.code) == ("uncertain", "lease_expired")
    assert (first.late_outcome, first.late_code) == ("rejected", "http_404")
    assert len(channel.sent) == (1 if native else 2)


async def test_a_delivery_that_the_store_does_not_know_is_never_sent(store: StoreThreads, scene: Scene) -> None:
    channel = ScriptedChannel()
    unknown = Verdict(Status.FAILED, "unknown_delivery")
    assert await sender(store, channel).deliver(Order(scene.event_id, "no-such-delivery", 0)) == unknown
    from_the_future = Order(scene.event_id, scene.order.delivery_id, 1)
    assert await sender(store, channel).deliver(from_the_future) == unknown
    assert channel.sent == []
    assert scene.status is Status.PENDING


@pytest.mark.parametrize("ended", [DELIVERED, REJECTED, UNCERTAIN])
async def test_what_has_ended_is_answered_and_not_sent(store: StoreThreads, scene: Scene, ended: Outcome) -> None:
    attempt(scene.database, scene.event_id, ended)
    channel = ScriptedChannel()
    verdict = await verdict_of(sender(store, channel), scene)
    assert (verdict.status, channel.sent) == (scene.status, [])


async def test_while_somebody_else_sends_it_comes_back_later(store: StoreThreads, scene: Scene) -> None:
    claim(scene.database, load(scene.database, scene.order.delivery_id), lease_s=20)
    channel = ScriptedChannel()
    verdict = await verdict_of(sender(store, channel), scene)
    assert (verdict.status, channel.sent) == (Status.PROCESSING, [])
    assert 15 < verdict.delay_s <= 20


@pytest.mark.parametrize(("native", "status", "sent"), [(True, Status.UNCERTAIN, 0), (False, Status.COMPLETED, 1)])
async def test_a_dead_senders_delivery_is_repeated_only_where_that_is_safe(
    store: StoreThreads, scene: Scene, native: bool, status: Status, sent: int
) -> None:
    claim(scene.database, load(scene.database, scene.order.delivery_id), lease_s=0.01)
    await asyncio.sleep(0.02)  # the lease
    channel = ScriptedChannel(native=native)
    verdict = await verdict_of(sender(store, channel), scene)
    assert (verdict.status, scene.status, len(channel.sent)) == (status, status, sent)
    assert scene.attempts[0].code == "lease_expired"


async def test_a_dead_senders_delivery_on_an_unknown_channel_is_a_doubt(store: StoreThreads, scene: Scene) -> None:
    claim(scene.database, load(scene.database, scene.order.delivery_id), lease_s=0.01)
    await asyncio.sleep(0.02)  # the lease
    assert (await verdict_of(sender(store), scene)).status is Status.UNCERTAIN


async def test_twenty_senders_send_once(store: StoreThreads, scene: Scene) -> None:
    channel = ScriptedChannel()
    many = [sender(store, channel) for _ in range(20)]
    verdicts = await asyncio.gather(*(one.deliver(scene.order) for one in many))
    assert len(channel.sent) == len(scene.attempts) == 1
    assert {verdict.status for verdict in verdicts if verdict} <= {Status.COMPLETED, Status.PROCESSING}
