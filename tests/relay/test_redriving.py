"""Decisions reach an event whatever became of its run, and the sweep brings back what was lost."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select, update
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from dev.temporal_server import TemporalServer
from domain.decision import Verdict
from domain.lifecycle import Status
from settings import RelaySettings
from store.database import Stores
from store.schema import events
from tests.activities.scripted_channel import DELIVERED, REJECTED, UNCERTAIN, ScriptedChannel
from tests.relay.post import Post
from tests.store.scenes import history, send
from tests.temporal import private_server
from tests.workflows.deadline import eventually

pytestmark = pytest.mark.slow

RUNNING, COMPLETED = WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED
FAILED, TERMINATED = WorkflowExecutionStatus.FAILED, WorkflowExecutionStatus.TERMINATED

SWEEPING = RelaySettings(idle_poll_s=0.05, sweep_every_s=0.05)


def age(post: Post, event_id: str) -> None:
    """Lets an event look as if nothing had touched it for long: the only way to wait without waiting."""
    post.database.write(
        lambda connection: (
            connection.execute(update(events).where(events.c.event_id == event_id).values(watch_at=0)).rowcount
        )
    )


@pytest.mark.parametrize(("verdict", "sends"), [(Verdict.RESEND, 2), (Verdict.DELIVERED, 1)])
async def test_a_decision_reaches_the_run_that_waits_for_it(post: Post, verdict: Verdict, sends: int) -> None:
    channel = ScriptedChannel(steps=[UNCERTAIN, DELIVERED])
    async with post.sending(channel):
        post.start()
        event_id = post.record()
        await post.reaches(event_id, Status.UNCERTAIN)
        waiting = await post.run_of(event_id)
        post.decide(event_id, verdict, Status.UNCERTAIN)
        await post.run_is(event_id, COMPLETED)
        after = await post.run_of(event_id)
    assert waiting is not None
    assert after is not None
    assert after.run_id == waiting.run_id
    assert len(channel.sent) == sends
    assert history(post.database, event_id).event.status is Status.COMPLETED


async def test_a_decision_reopens_an_event_whose_run_has_failed(post: Post) -> None:
    channel = ScriptedChannel(steps=[REJECTED, DELIVERED])
    async with post.sending(channel):
        post.start()
        event_id = post.record()
        await post.run_is(event_id, FAILED)
        post.decide(event_id, Verdict.RESEND, Status.FAILED)
        await post.run_is(event_id, COMPLETED)
    assert len(channel.sent) == 2
    assert history(post.database, event_id).event.status is Status.COMPLETED


async def test_a_decision_reaches_an_event_that_temporal_never_knew(post: Post) -> None:
    event_id = post.record()
    send(post.database, event_id, UNCERTAIN)
    post.decide(event_id, Verdict.RESEND, Status.UNCERTAIN)
    channel = ScriptedChannel()
    async with post.sending(channel):
        post.start()
        await post.reaches(event_id, Status.COMPLETED)
        await post.carried()
        await post.run_is(event_id, COMPLETED)
    assert len(channel.sent) == 1


async def test_a_decision_that_ends_an_event_sends_nothing(post: Post) -> None:
    event_id = post.record()
    send(post.database, event_id, UNCERTAIN)
    post.decide(event_id, Verdict.ABANDON, Status.UNCERTAIN)
    channel = ScriptedChannel()
    async with post.sending(channel):
        post.start()
        await post.carried()
        await post.run_is(event_id, FAILED)
    assert channel.sent == []


async def test_a_terminated_run_is_replaced_by_the_sweep(client: Client, stores: Stores) -> None:
    async with Post(client, stores, SWEEPING) as post:
        post.start()
        event_id = post.record()
        await post.run_is(event_id, RUNNING)
        await client.get_workflow_handle(event_id).terminate()
        await post.carried()
        age(post, event_id)
        channel = ScriptedChannel()
        async with post.sending(channel):
            await post.run_is(event_id, COMPLETED)
        assert len(channel.sent) == 1


async def test_the_sweep_leaves_a_live_run_alone(client: Client, stores: Stores) -> None:
    async with Post(client, stores, SWEEPING) as post:
        post.start()
        event_id = post.record()
        await post.run_is(event_id, RUNNING)
        first = await post.run_of(event_id)
        await post.carried()
        age(post, event_id)
        await eventually(partial(watched_again, post, event_id))
        await post.carried()
        second = await post.run_of(event_id)
    assert first is not None
    assert second is not None
    assert (second.run_id, second.status) == (first.run_id, RUNNING)


async def watched_again(post: Post, event_id: str) -> bool:
    """Whether the sweep has been there and has said when it comes back."""
    again_at = select(events.c.watch_at).where(events.c.event_id == event_id)
    return bool(post.database.read(lambda connection: connection.scalar(again_at)))


async def test_an_uncertain_event_is_parked_again_when_its_run_was_lost(client: Client, stores: Stores) -> None:
    channel = ScriptedChannel(steps=[UNCERTAIN, DELIVERED])
    async with Post(client, stores, SWEEPING) as post, post.sending(channel):
        post.start()
        event_id = post.record()
        await post.reaches(event_id, Status.UNCERTAIN)
        await post.run_is(event_id, RUNNING)
        await client.get_workflow_handle(event_id).terminate()
        age(post, event_id)
        await post.run_is(event_id, RUNNING)
        assert len(channel.sent) == 1
        post.decide(event_id, Verdict.RESEND, Status.UNCERTAIN)
        await post.run_is(event_id, COMPLETED)
    assert len(channel.sent) == 2


async def test_losing_temporals_database_loses_no_event(tmp_path: Path, stores: Stores) -> None:
    async with private_server(tmp_path) as server, Post(await Client.connect(server.address), stores, SWEEPING) as post:
        post.start()
        event_id = post.record()
        await post.run_is(event_id, RUNNING)
        await post.carried()
        lose_database(server, tmp_path)
        await eventually(partial(forgotten, post, event_id))
        age(post, event_id)
        channel = ScriptedChannel()
        async with post.sending(channel):
            await post.reaches(event_id, Status.COMPLETED)
        assert len(channel.sent) == 1


async def forgotten(post: Post, event_id: str) -> bool:
    """Whether a server answers again, and knows nothing."""
    try:
        return await post.run_of(event_id) is None
    except RPCError:
        return False


def lose_database(server: TemporalServer, directory: Path) -> None:
    """Kills the server and its database; another one takes its place."""
    os.kill(server.pid, signal.SIGKILL)
    for file in directory.glob("temporal.db*"):
        file.unlink()
