"""The decide activity: signals become audited decisions once, or refusals with a reason."""

from functools import partial
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.decide import MAX_TEXT, Decide
from domain.decision import Decision, Door, Verdict
from domain.lifecycle import Status
from store import decisions
from store.database import Database
from store.threads import StoreThreads
from tests.store.scenes import EMAIL, UNCERTAIN, WEBHOOK, history, part, record, send
from workflows.calls import DecideInput, DecideResult, DeliveryEnd, DeliveryRef

RESEND = {
    "channel": "webhook",
    "expected_status": "uncertain",
    "decision": "resend",
    "reason": "it never came",
    "operator": "ada",
}


@pytest.fixture
def database(store: StoreThreads) -> Database:
    """Where the tests' events live."""
    return store.stores.state


@pytest.fixture
def event_id(database: Database) -> str:
    """An event whose webhook is uncertain while its e-mail waits."""
    event_id = record(database, WEBHOOK, EMAIL)
    send(database, event_id, UNCERTAIN)
    return event_id


async def decide(store: StoreThreads, event_id: str, payload: dict[str, Any], signal: str = "s-1") -> DecideResult:
    return await ActivityEnvironment().run(Decide(store).run, DecideInput(event_id, signal, payload))


async def test_a_resend_opens_the_next_generation(store: StoreThreads, database: Database, event_id: str) -> None:
    delivery_id = part(database, event_id).delivery_id
    answer = await decide(store, event_id, RESEND)
    assert answer == DecideResult(accepted=True, to_send=[DeliveryRef(delivery_id, "webhook", 1)])
    (audit,) = history(database, event_id).decisions
    assert (audit.operator, audit.reason, audit.door, audit.verdict) == ("ada", "it never came", "signal", "resend")


@pytest.mark.parametrize(("decision", "status"), [("delivered", Status.COMPLETED), ("abandon", Status.FAILED)])
async def test_other_decisions_settle(
    store: StoreThreads, database: Database, event_id: str, decision: str, status: Status
) -> None:
    answer = await decide(store, event_id, RESEND | {"decision": decision})
    assert answer == DecideResult(
        accepted=True, settled=[DeliveryEnd(part(database, event_id).delivery_id, "webhook", status.value)]
    )
    assert part(database, event_id).status is status


async def test_asking_again_is_the_same_decision(store: StoreThreads, database: Database, event_id: str) -> None:
    first = await decide(store, event_id, RESEND)
    assert await decide(store, event_id, RESEND) == first
    assert len(history(database, event_id).decisions) == 1


async def test_another_signal_finds_the_status_changed(store: StoreThreads, event_id: str) -> None:
    await decide(store, event_id, RESEND)
    assert await decide(store, event_id, RESEND, "s-2") == DecideResult(
        accepted=False, reason="The status is no longer the one you saw."
    )


async def test_a_recorded_decision_is_only_carried(store: StoreThreads, database: Database, event_id: str) -> None:
    recorded = Decision(
        "d-1", event_id, Verdict.RESEND, Status.UNCERTAIN, "ada", "", Door.API, "webhook", allow_uncertain=True
    )
    database.write(partial(decisions.apply, decision=recorded))
    answer = await decide(store, event_id, {"decision_id": "d-1"})
    assert answer.to_send == [DeliveryRef(part(database, event_id).delivery_id, "webhook", 1)]
    assert len(history(database, event_id).decisions) == 1


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"decision_id": "never-recorded"},
        {"decision_id": 7},
        RESEND | {"decision": "burn"},
        RESEND | {"decision": None},
        RESEND | {"decision": ["resend"]},
        RESEND | {"expected_status": "lost"},
        RESEND | {"expected_status": "pending"},
        RESEND | {"operator": " "},
        RESEND | {"operator": 1},
        RESEND | {"reason": {"a": 1}},
        RESEND | {"reason": "x" * (MAX_TEXT + 1)},
        RESEND | {"channel": "pigeon"},
        RESEND | {"operator": "\ud800"},
        RESEND | {"operator": "😀" * 300},
        RESEND | {"decision_id": "\ud800", "operator": ""},
        {key: value for key, value in RESEND.items() if key != "operator"},
    ],
)
async def test_what_is_not_a_decision_is_refused(
    store: StoreThreads, database: Database, event_id: str, payload: dict[str, Any]
) -> None:
    answer = await decide(store, event_id, payload)
    assert not answer.accepted
    assert answer.reason
    assert part(database, event_id).status is Status.UNCERTAIN
    assert history(database, event_id).decisions == ()


async def test_a_status_that_nobody_sees_is_refused(store: StoreThreads, event_id: str) -> None:
    answer = await decide(store, event_id, RESEND | {"channel": "email"})
    assert answer == DecideResult(accepted=False, reason="The status is no longer the one you saw.")


@pytest.mark.parametrize("unknown", ["x_deliver_nobody", "not an event id"])
async def test_an_unknown_event_is_refused(store: StoreThreads, unknown: str) -> None:
    assert await decide(store, unknown, RESEND) == DecideResult(accepted=False, reason="There is no such object.")
