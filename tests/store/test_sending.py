"""The send protocol's transactions: one holder at a time, and a holder whose lease is gone changes nothing."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from domain.lifecycle import Status
from domain.outcome import Outcome, OutcomeKind, Scope, not_sent
from store import deliveries
from store.database import Database
from store.deliveries import Loaded, Result
from tests.store.scenes import (
    DELIVERED,
    EMAIL,
    REJECTED,
    TRANSIENT,
    UNCERTAIN,
    WEBHOOK,
    claim,
    history,
    load,
    part,
    record,
    send,
    settle,
)

SHORT = 0.05


def seen_by_a_sender(database: Database) -> Loaded:
    event = record(database, WEBHOOK)
    return load(database, part(database, event).delivery_id)


def recover(database: Database, seen: Loaded, *, native: bool) -> deliveries.Verdict | None:
    return database.write(partial(deliveries.recover, seen=seen, native=native, max_attempts=6))


def test_of_twenty_claims_one_wins(database: Database) -> None:
    seen = seen_by_a_sender(database)
    with ThreadPoolExecutor(16) as threads:
        won = [token for token in threads.map(lambda _: claim(database, seen), range(20)) if token]
    assert len(won) == 1
    assert len(history(database, seen.event_id).attempts) == 1


def test_a_claim_whose_answer_was_lost_is_still_its_own(database: Database) -> None:
    seen = seen_by_a_sender(database)
    assert claim(database, seen, token="mine") == "mine"
    assert claim(database, seen, token="mine") == "mine"
    assert len(history(database, seen.event_id).attempts) == 1


def test_sending_is_on_record_before_the_outcome_is(database: Database) -> None:
    seen = seen_by_a_sender(database)
    claim(database, seen)
    (attempt,) = history(database, seen.event_id).attempts
    assert (attempt.outcome, attempt.ended_at) == (None, None)
    assert history(database, seen.event_id).event.status is Status.PROCESSING


@pytest.mark.parametrize(
    ("outcome", "native", "status"),
    [
        (DELIVERED, True, "completed"),
        (REJECTED, True, "failed"),
        (TRANSIENT, True, "pending"),
        (UNCERTAIN, True, "uncertain"),
        (UNCERTAIN, False, "pending"),
    ],
)
def test_an_outcome_moves_attempt_delivery_and_event_together(
    database: Database, outcome: Outcome, native: bool, status: str
) -> None:
    event = record(database, WEBHOOK)
    send(database, event, outcome, native=native)
    found = history(database, event)
    assert found.event.status == status
    assert part(database, event).status == status
    assert found.attempts[0].status_after == status
    assert found.attempts[0].outcome == outcome.kind
    assert (found.event.completed_at is not None) == (status in ("completed", "failed"))


def test_settling_twice_is_settling_once(database: Database) -> None:
    seen = seen_by_a_sender(database)
    token = claim(database, seen)
    assert token
    first = settle(database, seen, token, DELIVERED)
    assert settle(database, seen, token, DELIVERED) == first
    assert part(database, seen.event_id).total_attempts == 1


def test_six_transient_attempts_end_the_cycle(database: Database) -> None:
    event = record(database, WEBHOOK)
    for _ in range(6):
        assert part(database, event).status is Status.PENDING
        send(database, event, TRANSIENT)
    assert part(database, event).status is Status.FAILED
    assert part(database, event).cycle_attempts == 6


def test_a_retry_is_due_when_it_was_promised(database: Database) -> None:
    seen = seen_by_a_sender(database)
    token = claim(database, seen)
    assert token
    settle(database, seen, token, TRANSIENT, delay_s=30)
    assert 29 < load(database, seen.delivery_id).wait_s <= 30


def test_a_holder_past_its_lease_confirms_nothing(database: Database) -> None:
    seen = seen_by_a_sender(database)
    token = claim(database, seen, lease_s=SHORT)
    assert token
    time.sleep(SHORT * 2)
    verdict = settle(database, seen, token, DELIVERED)
    assert (verdict.fenced, verdict.status) == (True, Status.PROCESSING)
    (attempt,) = history(database, seen.event_id).attempts
    assert (attempt.outcome, attempt.late_outcome, attempt.late_code) == (None, "delivered", "http_200")


def test_a_successor_fences_off_its_predecessor(database: Database) -> None:
    seen = seen_by_a_sender(database)
    stale = claim(database, seen, lease_s=SHORT)
    assert stale
    time.sleep(SHORT * 2)
    assert recover(database, load(database, seen.delivery_id), native=False) is not None
    again = load(database, seen.delivery_id)
    fresh = claim(database, again)
    assert fresh
    assert settle(database, seen, stale, DELIVERED).fenced
    assert part(database, seen.event_id).status is Status.PROCESSING
    assert settle(database, again, fresh, TRANSIENT).status is Status.PENDING
    assert [a.late_outcome for a in history(database, seen.event_id).attempts] == ["delivered", None]


def test_a_lease_is_renewed_only_while_it_holds(database: Database) -> None:
    seen = seen_by_a_sender(database)
    token = claim(database, seen, lease_s=SHORT)
    assert token
    renew = partial(deliveries.renew, delivery_id=seen.delivery_id, lease_s=30)
    assert not database.write(partial(renew, token="somebody else"))
    time.sleep(SHORT * 2)
    assert not database.write(partial(renew, token=token))


def test_a_renewed_lease_still_settles(database: Database) -> None:
    seen = seen_by_a_sender(database)
    token = claim(database, seen, lease_s=0.5)
    assert token
    assert database.write(partial(deliveries.renew, delivery_id=seen.delivery_id, token=token, lease_s=30))
    time.sleep(0.6)
    assert settle(database, seen, token, DELIVERED).status is Status.COMPLETED


def test_a_living_lease_is_left_alone(database: Database) -> None:
    seen = seen_by_a_sender(database)
    claim(database, seen, lease_s=30)
    verdict = recover(database, load(database, seen.delivery_id), native=True)
    assert verdict is not None
    assert verdict.status is Status.PROCESSING
    assert 0 < verdict.delay_s <= 30


@pytest.mark.parametrize(("native", "status"), [(True, "uncertain"), (False, "pending")])
def test_a_dead_lease_is_doubt_on_a_native_channel_and_a_repeat_on_a_safe_one(
    database: Database, native: bool, status: str
) -> None:
    seen = seen_by_a_sender(database)
    claim(database, seen, lease_s=SHORT)
    time.sleep(SHORT * 2)
    verdict = recover(database, load(database, seen.delivery_id), native=native)
    assert verdict is not None
    assert verdict.status == status
    (attempt,) = history(database, seen.event_id).attempts
    assert (attempt.outcome, attempt.code, attempt.status_after) == ("uncertain", "lease_expired", status)
    assert recover(database, seen, native=native) is None


@pytest.mark.parametrize(
    ("outcome", "statuses"),
    [
        (not_sent("dns_failed"), ["pending"] * 5 + ["failed"]),
        (not_sent("channel_not_configured", scope=Scope.CONFIG, permanent=True), ["failed"]),
    ],
)
def test_what_cannot_be_prepared_is_counted_and_bounded(
    database: Database, outcome: Outcome, statuses: list[str]
) -> None:
    event = record(database, EMAIL)
    delivery = part(database, event, "email").delivery_id
    found = []
    for number in range(len(statuses)):
        seen = load(database, delivery)
        result = Result(event, delivery, f"token-{number}", outcome, True, 6, 0.0)
        refuse = partial(deliveries.refuse, seen=seen, result=result)
        verdict = database.write(refuse)
        assert database.write(refuse) == verdict
        assert verdict is not None
        found.append(verdict.status)
    assert found == statuses
    assert part(database, event, "email").total_attempts == len(statuses)
    assert {a.stage for a in history(database, event).attempts} == {"prepare"}
    assert OutcomeKind(history(database, event).attempts[-1].outcome or "") is outcome.kind
