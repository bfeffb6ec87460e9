"""Operators' decisions: one winner, an audit row with every change, the same answer when asked again."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from domain.decision import Decision, Door, Verdict
from domain.errors import NotFound, StatusChanged
from domain.lifecycle import Status
from domain.outcome import Outcome
from store import decisions, intents
from store.database import Database
from store.intents import Action
from tests.store.scenes import EMAIL, REJECTED, UNCERTAIN, WECOM, claim, history, load, part, record, send


def waiting(database: Database, outcome: Outcome) -> str:
    """An event with one delivery that ended so; its start intent is out of the way."""
    event = record(database, WECOM)
    send(database, event, outcome, channel="wecom")
    taken = database.write(partial(intents.claim, token="start", lease_s=30, limit=10))
    database.write(partial(intents.done, token="start", intent_ids=[i.intent_id for i in taken]))
    return event


def order(
    event: str,
    verdict: Verdict = Verdict.RESEND,
    *,
    expected: Status = Status.UNCERTAIN,
    decision_id: str = "d-1",
    door: Door = Door.API,
    tenant: str | None = "t",
) -> Decision:
    return Decision(decision_id, event, verdict, expected, "op", "looked", door, allow_uncertain=True, tenant=tenant)


def apply(database: Database, decision: Decision) -> decisions.Applied:
    return database.write(partial(decisions.apply, decision=decision))


@pytest.mark.parametrize(
    ("verdict", "status"),
    [(Verdict.RESEND, "pending"), (Verdict.DELIVERED, "completed"), (Verdict.ABANDON, "failed")],
)
def test_a_decision_moves_the_delivery_with_its_audit_row_and_intent(
    database: Database, verdict: Verdict, status: str
) -> None:
    event = waiting(database, UNCERTAIN)
    applied = apply(database, order(event, verdict))
    assert applied.event_status == status
    (audit,) = history(database, event).decisions
    assert (audit.verdict, audit.observed_status, audit.new_status) == (verdict, "uncertain", status)
    assert (audit.operator, audit.reason, audit.door) == ("op", "looked", "api")
    (intent,) = database.write(partial(intents.claim, token="x", lease_s=30, limit=10))
    assert (intent.action, intent.decision_id) == (Action.DECIDE, "d-1")


def test_a_decision_by_signal_needs_no_intent(database: Database) -> None:
    event = waiting(database, UNCERTAIN)
    apply(database, order(event, door=Door.SIGNAL, tenant=None))
    assert database.write(partial(intents.claim, token="x", lease_s=30, limit=10)) == []


def test_asking_again_answers_the_same_and_changes_nothing(database: Database) -> None:
    event = waiting(database, UNCERTAIN)
    first = apply(database, order(event))
    assert apply(database, order(event)) == first
    assert len(history(database, event).decisions) == 1
    assert part(database, event, "wecom").generation == 1


def test_of_two_operators_one_wins(database: Database) -> None:
    event = waiting(database, UNCERTAIN)

    def attempt(number: int) -> str:
        try:
            apply(database, order(event, decision_id=f"d-{number}"))
        except StatusChanged as refusal:
            return refusal.current_status
        return "won"

    with ThreadPoolExecutor(8) as threads:
        answers = sorted(threads.map(attempt, range(8)))
    assert answers == ["pending"] * 7 + ["won"]
    assert len(history(database, event).decisions) == 1


def test_a_resend_opens_a_new_cycle_and_keeps_the_sum(database: Database) -> None:
    event = waiting(database, REJECTED)
    applied = apply(database, order(event, expected=Status.FAILED))
    delivery = part(database, event, "wecom")
    assert (delivery.cycle_attempts, delivery.total_attempts, delivery.generation) == (0, 1, 1)
    assert [(d.delivery_id, d.generation) for d in applied.to_send] == [(delivery.delivery_id, 1)]


def test_a_sender_of_the_old_generation_is_fenced_off(database: Database) -> None:
    event = waiting(database, REJECTED)
    old = load(database, part(database, event, "wecom").delivery_id)
    apply(database, order(event, expected=Status.FAILED))
    assert claim(database, old) is None


def test_another_tenants_event_is_not_found(database: Database) -> None:
    event = waiting(database, UNCERTAIN)
    with pytest.raises(NotFound):
        apply(database, order(event, tenant="u"))
    assert part(database, event, "wecom").status is Status.UNCERTAIN


def test_the_other_delivery_of_the_event_is_left_alone(database: Database) -> None:
    event = record(database, EMAIL, WECOM)
    send(database, event, UNCERTAIN, channel="email")
    apply(database, order(event, Verdict.DELIVERED))
    assert part(database, event, "email").status is Status.COMPLETED
    assert part(database, event, "wecom").status is Status.PENDING
    assert history(database, event).event.status is Status.PROCESSING
