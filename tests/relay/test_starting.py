"""What was recorded is started in Temporal, once, whatever Temporal and other relays do meanwhile."""

import asyncio
import logging
from functools import partial
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from sqlalchemy import func, select
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from dev.temporal_server import TemporalServer
from domain.event import NewEvent, Snapshot
from domain.identity import digest
from domain.kinds import Kind
from domain.lifecycle import Status
from settings import RelaySettings
from store import events
from store.clock import sqlite_now
from store.database import Stores
from store.schema import intents
from tests.activities.scripted_channel import ScriptedChannel
from tests.relay.gate import Gate
from tests.relay.post import Post
from tests.store.scenes import WEBHOOK, history
from tests.temporal import private_server
from tests.workflows.deadline import eventually
from workflows import calls
from workflows.calls import EventInput

pytestmark = pytest.mark.slow

RUNNING = WorkflowExecutionStatus.RUNNING


async def test_an_event_is_delivered_by_the_workflow_of_its_id(post: Post) -> None:
    channel = ScriptedChannel()
    async with post.sending(channel):
        post.start()
        event_id = post.record()
        await post.run_is(event_id, WorkflowExecutionStatus.COMPLETED)
    assert post.queued() == 0
    assert [message.event_id for message in channel.sent] == [event_id]
    assert history(post.database, event_id).event.status is Status.COMPLETED


async def test_a_run_holds_ids_and_shows_no_tenant(post: Post) -> None:
    post.start()
    event_id = post.record()
    await post.run_is(event_id, RUNNING)
    run = await post.run_of(event_id)
    assert run is not None
    assert run.typed_search_attributes[calls.TENANT] == digest("t")
    assert run.typed_search_attributes[calls.KIND] == "task_delivery"
    assert run.typed_search_attributes[calls.STATE] == calls.STATE_OPEN
    assert await run.static_summary() == "task_delivery: webhook"
    text = (await post.client.get_workflow_handle(event_id).fetch_history()).to_json()
    assert WEBHOOK.recipient not in text


async def test_two_relays_start_each_event_once(post: Post, client: Client, stores: Stores) -> None:
    channel = ScriptedChannel()
    recorded = [post.record() for _ in range(40)]
    async with Post(client, stores, RelaySettings(batch=3), post.task_queue) as other, post.sending(channel):
        other.start()
        post.start()
        for event_id in recorded:
            await post.reaches(event_id, Status.COMPLETED)
        await post.carried()
    assert sorted(message.event_id for message in channel.sent) == sorted(recorded)


async def test_a_commit_that_is_nudged_waits_for_no_poll(client: Client, stores: Stores) -> None:
    async with Post(client, stores, RelaySettings(busy_poll_s=3_600, idle_poll_s=3_600, sweep_every_s=3_600)) as post:
        post.start()
        for _ in range(3):
            event_id = post.record()
            await asyncio.to_thread(post.relay.nudge)
            await post.run_is(event_id, RUNNING)
            await post.carried()


async def test_what_temporal_cannot_take_yet_waits_for_it(tmp_path: Path, stores: Stores) -> None:
    server = private_server(tmp_path)
    client = await Client.connect(server.address, lazy=True)
    async with Post(client, stores) as post:
        recorded = [post.record() for _ in range(5)]
        post.start()
        await eventually(partial(tried, post))
        assert post.queued() == 5
        async with server:
            for event_id in recorded:
                await post.run_is(event_id, RUNNING)
            await post.carried()
            await post.stop()


async def tried(post: Post) -> bool:
    """Whether the relay has claimed an intent and given it back."""
    fewest: int | None = post.database.read(lambda connection: connection.scalar(select(func.min(intents.c.tries))))
    return bool(fewest)


async def test_an_event_that_was_started_before_is_acknowledged(post: Post) -> None:
    running, ended = post.record(), post.record()
    for event_id in (running, ended):
        await start_by_hand(post, event_id)
    await post.client.get_workflow_handle(ended).terminate()
    before = [await post.run_of(event_id) for event_id in (running, ended)]
    post.start()
    await post.carried()
    after = [await post.run_of(event_id) for event_id in (running, ended)]
    assert [run.run_id for run in after if run] == [run.run_id for run in before if run]


async def start_by_hand(post: Post, event_id: str) -> None:
    """What a relay did whose answer was lost."""
    await post.client.start_workflow(calls.WORKFLOW, EventInput(event_id, []), id=event_id, task_queue=post.task_queue)


async def test_an_intent_that_temporal_refuses_stops_no_other(post: Post, caplog: pytest.LogCaptureFixture) -> None:
    # Longer than Temporal allows a workflow's id to be, which no event of ours can become by itself.
    poison = NewEvent(f"x_deliver_{'x' * 1_100}", "t", Kind.TASK_DELIVERY, Snapshot("Brand", "", "", {}), (WEBHOOK,))
    post.database.write(partial(events.add, now=sqlite_now(), new=poison))
    good = [post.record() for _ in range(3)]
    post.start()
    for event_id in good:
        await post.run_is(event_id, RUNNING)
    await eventually(partial(tried, post))
    assert post.queued() == 1
    assert [(r.levelno, r.__dict__["code"]) for r in caplog.records if r.message == "start_refused"][:1] == [
        (logging.ERROR, "INVALID_ARGUMENT")
    ]


async def test_a_namespace_without_our_search_attributes_gets_none(
    server: TemporalServer, client: Client, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    bare = await bare_namespace(server, client)
    async with Post(bare, stores) as post:
        post.start()
        for _ in range(2):
            event_id = post.record()
            await post.run_is(event_id, RUNNING)
            run = await post.run_of(event_id)
            assert run is not None
            assert run.typed_search_attributes.get(calls.STATE) is None
            assert '"search_attributes":false' in await input_of(post, event_id)
    assert [r.message for r in caplog.records].count("search_attributes_not_registered") == 1


async def bare_namespace(server: TemporalServer, client: Client) -> Client:
    """A client of a namespace in which nobody has registered anything."""
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace="bare", workflow_execution_retention_period=Duration(seconds=86_400))
    )
    bare = await Client.connect(server.address, namespace="bare")

    async def known() -> bool:
        try:
            await bare.start_workflow("Probe", id="probe", task_queue="nobody")
        except RPCError:
            return False
        return True

    await eventually(known)
    return bare


async def input_of(post: Post, event_id: str) -> str:
    history = await post.client.get_workflow_handle(event_id).fetch_history()
    return history.events[0].workflow_execution_started_event_attributes.input.payloads[0].data.decode()


async def test_a_stopped_relay_finishes_what_it_holds(server: TemporalServer, stores: Stores) -> None:
    async with Gate(server.address) as gate, Post(await Client.connect(gate.address), stores) as post:
        held = [post.record() for _ in range(3)]
        gate.shut()
        post.start()
        await asyncio.wait_for(gate.waiting.wait(), 10)
        ended = post.ask_to_stop()
        late = post.record()
        done, _ = await asyncio.wait([ended], timeout=0.1)
        assert not done
        gate.open()
        await ended
        assert post.queued() == 1
        for event_id in held:
            assert await post.run_of(event_id)
        assert await post.run_of(late) is None
