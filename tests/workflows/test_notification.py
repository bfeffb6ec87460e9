"""The process over scripted activities: what it asks for, what it waits for, and how it ends."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from tests.workflows.deadline import eventually
from tests.workflows.script import (
    COMPLETED,
    FAILED,
    SUPERSEDED,
    UNCERTAIN,
    Handle,
    Script,
    hangs,
    on_stage,
    ref,
    transient,
)
from workflows import calls
from workflows.calls import DecideInput, DecideResult, DeliverResult, DeliveryEnd

pytestmark = pytest.mark.slow

CONFIRM = {
    "channel": "channel-a",
    "expected_status": "uncertain",
    "decision": "delivered",
    "reason": "seen at the receiver",
    "operator": "ada",
}


def settles(*delivery_ids: str) -> DecideResult:
    ends = [DeliveryEnd(delivery_id, "channel-a", "completed") for delivery_id in delivery_ids]
    return DecideResult(accepted=True, settled=ends)


def sends(delivery_id: str, generation: int) -> DecideResult:
    return DecideResult(accepted=True, to_send=[ref(delivery_id, generation)])


async def details(handle: Handle) -> str:
    """What the Temporal Web UI shows of a run."""
    metadata: WorkflowMetadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return str(metadata.current_details)


async def shows(handle: Handle, text: str) -> None:
    async def shown() -> bool:
        return text in await details(handle)

    await eventually(shown)


async def running(handle: Handle) -> bool:
    return (await handle.describe()).status is WorkflowExecutionStatus.RUNNING


async def events_of(handle: Handle, kind: EventType.ValueType) -> int:
    history = await handle.fetch_history()
    return sum(event.event_type == kind for event in history.events)


async def test_an_event_ends_when_every_delivery_has_ended(client: Client) -> None:
    script = Script()
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"), ref("b"), ref("c"))
        assert await handle.result() == dict.fromkeys(["channel-a/a", "channel-b/b", "channel-c/c"], COMPLETED.status)
    assert script.asked == {"a": [0], "b": [0], "c": [0]}


async def test_it_runs_inside_the_sandbox_too(client: Client) -> None:
    script = Script({"a": [UNCERTAIN]}, lambda order: settles("a"))
    async with on_stage(client, script, SandboxedWorkflowRunner()) as stage:
        handle = await stage.start(ref("a"), ref("b"), search_attributes=True)
        await stage.asked("a", 1)
        await handle.signal(calls.RESOLVE, CONFIRM)
        assert await handle.result() == {"channel-a/a": "completed", "channel-b/b": "completed"}


async def test_an_event_without_open_deliveries_ends_at_once(client: Client) -> None:
    async with on_stage(client, Script()) as stage:
        assert await (await stage.start()).result() == {}


async def test_one_failed_delivery_stops_no_other_and_fails_the_run(client: Client) -> None:
    script = Script({"a": [FAILED]})
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"), ref("b"))
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "DeliveryFailed"
    assert cause.non_retryable
    assert script.asked == {"a": [0], "b": [0]}


async def test_a_superseded_delivery_is_not_an_ending(client: Client) -> None:
    async with on_stage(client, Script({"a": [SUPERSEDED]})) as stage:
        assert await (await stage.start(ref("a"), ref("b"))).result() == {"channel-b/b": "completed"}


async def test_a_transient_send_is_asked_for_again_after_its_delay(client: Client) -> None:
    script = Script({"a": [transient(timedelta(milliseconds=20)), transient(timedelta(milliseconds=20)), COMPLETED]})
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"))
        assert await handle.result() == {"channel-a/a": "completed"}
        assert await events_of(handle, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED) == 1
    assert script.asked["a"] == [0, 0, 0]


async def test_a_vanished_worker_is_asked_after_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "HEARTBEAT_TIMEOUT", timedelta(seconds=1))
    script = Script({"a": [hangs, UNCERTAIN]}, lambda order: settles("a"))
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"))
        await stage.asked("a", 2)
        await shows(handle, "**channel-a** may have been sent")
        assert await events_of(handle, EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT) == 1
        assert await events_of(handle, EventType.EVENT_TYPE_TIMER_STARTED) == 0
        await handle.signal(calls.RESOLVE, CONFIRM)
        await handle.result()


async def test_an_uncertain_delivery_parks_where_people_look(client: Client) -> None:
    script = Script({"a": [UNCERTAIN]}, lambda order: settles("a"))
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"), ref("b"), search_attributes=True)
        await shows(handle, "**channel-a** may have been sent (`no_answer`)")
        assert "channel-b" not in await details(handle)
        uncertain = f"{calls.STATE.name} = '{calls.STATE_UNCERTAIN}' AND WorkflowId = '{handle.id}'"

        async def listed() -> bool:
            return [found.id async for found in client.list_workflows(uncertain)] == [handle.id]

        async def unlisted() -> bool:
            return not await listed()

        await eventually(listed)
        await handle.signal(calls.RESOLVE, CONFIRM)
        assert await handle.result() == {"channel-a/a": "completed", "channel-b/b": "completed"}
        await eventually(unlisted)
        assert (await details(handle)) == "Nothing waits for a decision."


async def test_without_search_attributes_none_is_ever_set(client: Client) -> None:
    async with on_stage(client, Script({"a": [UNCERTAIN]}, lambda order: settles("a"))) as stage:
        handle = await stage.start(ref("a"), search_attributes=False)
        await shows(handle, "channel-a")
        await handle.signal(calls.RESOLVE, CONFIRM)
        await handle.result()
        assert await events_of(handle, EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES) == 0


@pytest.mark.parametrize("payload", [{"decision_id": "d-1"}, CONFIRM], ids=["outbox", "operator"])
async def test_a_decision_reaches_the_store_as_it_was_sent(client: Client, payload: dict[str, str]) -> None:
    script = Script({"a": [UNCERTAIN]}, lambda order: settles("a"))
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"))
        await stage.asked("a", 1)
        await handle.signal(calls.RESOLVE, payload)
        await handle.result()
    (order,) = script.decisions
    assert (order.event_id, order.payload) == (handle.id, payload)
    assert order.decision_id


@pytest.mark.parametrize(
    "arguments",
    [[["a"]], ["resend"], [3], [None], [], [CONFIRM, CONFIRM]],
    ids=["list", "string", "number", "null", "none", "two"],
)
async def test_a_malformed_signal_is_refused_and_breaks_nothing(client: Client, arguments: list[object]) -> None:
    script = Script({"a": [UNCERTAIN]}, lambda order: settles("a"))
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"))
        await stage.asked("a", 1)
        await handle.signal(calls.RESOLVE, args=arguments)
        await shows(handle, "A decision was refused: the argument must be one JSON object")
        assert script.decisions == []
        await handle.signal(calls.RESOLVE, CONFIRM)
        await handle.result()


async def test_a_refusal_is_shown_and_the_delivery_stays_parked(client: Client) -> None:
    async with on_stage(client, Script({"a": [UNCERTAIN]})) as stage:
        handle = await stage.start(ref("a"))
        await stage.asked("a", 1)
        for _ in range(7):
            await handle.signal(calls.RESOLVE, CONFIRM)
        await eventually(partial(five_refusals, handle))
        assert await running(handle)
        stage.script.decide = lambda order: settles("a")
        await handle.signal(calls.RESOLVE, CONFIRM)
        await handle.result()


async def five_refusals(handle: Handle) -> bool:
    """No more, however many there were."""
    return (await details(handle)).count("A decision was refused: status_changed") == 5


async def test_a_decision_about_a_delivery_that_is_not_parked_changes_nothing(client: Client) -> None:
    script = Script({"a": [UNCERTAIN]}, lambda order: settles("elsewhere"))
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"))
        await shows(handle, "channel-a")
        await handle.signal(calls.RESOLVE, CONFIRM)
        await eventually_decided(script, 1)
        assert "channel-a" in await details(handle)
        script.decide = lambda order: settles("a")
        await handle.signal(calls.RESOLVE, CONFIRM)
        await handle.result()


async def eventually_decided(script: Script, times: int) -> None:
    async def often_enough() -> bool:
        return len(script.decisions) >= times

    await eventually(often_enough)


async def test_a_resend_opens_the_next_generation_once(client: Client) -> None:
    script = Script({"a": [UNCERTAIN, COMPLETED]}, lambda order: sends("a", 1))
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"))
        await shows(handle, "channel-a")
        await handle.signal(calls.RESOLVE, CONFIRM)
        assert await handle.result() == {"channel-a/a": "completed"}
    assert script.asked["a"] == [0, 1]


async def test_two_signals_at_once_resend_once(client: Client) -> None:
    script = Script({"a": [UNCERTAIN, COMPLETED]}, lambda order: sends("a", 1))
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"), ref("b"))
        await shows(handle, "channel-a")
    for _ in range(2):  # nobody works now, so that both are found at once
        await handle.signal(calls.RESOLVE, CONFIRM)
    stage_again = Script({"a": [COMPLETED]}, lambda order: sends("a", 1))
    async with on_stage(client, stage_again, task_queue=stage.task_queue):
        assert (await handle.result())["channel-a/a"] == "completed"
    assert len(stage_again.decisions) == 2
    assert stage_again.asked["a"] == [1]


async def test_two_decisions_about_two_deliveries_both_count(client: Client) -> None:
    script = Script({"a": [UNCERTAIN], "b": [UNCERTAIN, COMPLETED]}, by_channel)
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"), ref("b"))
        await shows(handle, "channel-a")
        await shows(handle, "channel-b")
        await handle.signal(calls.RESOLVE, {"channel": "a"})
        await handle.signal(calls.RESOLVE, {"channel": "b"})
        assert await handle.result() == {"channel-a/a": "completed", "channel-b/b": "completed"}
    assert script.asked == {"a": [0], "b": [0, 1]}


def by_channel(order: DecideInput) -> DecideResult:
    return settles("a") if order.payload["channel"] == "a" else sends("b", 1)


async def test_a_signal_that_starts_the_run_sends_its_delivery_once(client: Client) -> None:
    script = Script(decide=lambda order: sends("a", 1))
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a", 1), signal={"decision_id": "d-1"})
        assert await handle.result() == {"channel-a/a": "completed"}
    assert len(script.decisions) == 1
    assert script.asked["a"] == [1]


async def test_a_decision_overtakes_the_answer_it_is_about(client: Client) -> None:
    decided = asyncio.Event()

    async def uncertain_after_the_decision() -> DeliverResult:
        await decided.wait()
        return UNCERTAIN

    script = Script({"a": [uncertain_after_the_decision]}, lambda order: settles("a"))
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"))
        await stage.asked("a", 1)
        await handle.signal(calls.RESOLVE, CONFIRM)
        await eventually_decided(script, 1)
        await eventually(partial(decision_reported, handle))
        decided.set()
        assert await handle.result() == {"channel-a/a": "completed"}


async def decision_reported(handle: Handle) -> bool:
    return await events_of(handle, EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED) == 1


async def test_cancelling_a_run_leaves_what_is_being_sent_alone(client: Client) -> None:
    sent = asyncio.Event()

    async def slow() -> DeliverResult:
        await asyncio.sleep(0.2)
        sent.set()
        return COMPLETED

    script = Script({"a": [slow]})
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"))
        await stage.asked("a", 1)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
        assert isinstance(failure.value.cause, CancelledError)
        await asyncio.wait_for(sent.wait(), 5)
    assert script.asked["a"] == [0]


async def test_a_resent_delivery_replaces_its_failure(client: Client) -> None:
    script = Script({"a": [FAILED, COMPLETED], "b": [UNCERTAIN]}, lambda order: sends("a", 1))
    async with on_stage(client, script) as stage:
        handle = await stage.start(ref("a"), ref("b"))
        await shows(handle, "channel-b")
        await stage.asked("a", 1)
        await handle.signal(calls.RESOLVE, {"decision_id": "d-1"})
        await stage.asked("a", 2)
        script.decide = lambda order: settles("b")
        await handle.signal(calls.RESOLVE, {"decision_id": "d-2"})
        assert await handle.result() == {"channel-a/a": "completed", "channel-a/b": "completed"}


async def test_a_decision_is_heard_after_a_week(skipping: WorkflowEnvironment) -> None:
    script = Script({"a": [UNCERTAIN]}, lambda order: settles("a"))
    async with on_stage(skipping.client, script) as stage:
        stage.patience = timedelta(days=30)
        handle = await stage.start(ref("a"), ref("b"))
        await stage.asked("a", 1)
        await skipping.sleep(timedelta(days=7))
        assert await running(handle)
        await handle.signal(calls.RESOLVE, CONFIRM)
        assert await handle.result() == {"channel-a/a": "completed", "channel-b/b": "completed"}
    assert script.asked == {"a": [0], "b": [0]}


async def test_hours_between_attempts_cost_no_history(skipping: WorkflowEnvironment) -> None:
    script = Script({"a": [*[transient(timedelta(hours=12))] * 5, COMPLETED]})
    async with on_stage(skipping.client, script) as stage:
        stage.patience = timedelta(days=30)
        begun = await skipping.get_current_time()
        handle = await stage.start(ref("a"))
        assert await handle.result() == {"channel-a/a": "completed"}
        assert await skipping.get_current_time() - begun >= timedelta(hours=60)
        assert await events_of(handle, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED) == 1
    assert script.asked["a"] == [0] * 6
