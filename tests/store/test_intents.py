"""The outbox queue: leased, never lost, never handed to two holders, by state and not by number."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from sqlalchemy import Connection, update

from store import intents, watch
from store.clock import SECOND
from store.database import Database
from store.intents import Action, Intent
from store.schema import events
from tests.store.scenes import DELIVERED, EMAIL, WEBHOOK, part, record, send


def claim(database: Database, token: str, *, lease_s: float = 30, limit: int = 100) -> list[Intent]:
    return database.write(partial(intents.claim, token=token, lease_s=lease_s, limit=limit))


def test_a_claimed_intent_holds_what_a_start_needs(database: Database) -> None:
    event = record(database, WEBHOOK, EMAIL)
    (intent,) = claim(database, "a")
    assert (intent.event_id, intent.tenant, intent.kind, intent.action) == (event, "t", "task_delivery", Action.START)
    assert [(d.channel, d.generation) for d in intent.deliveries] == [("webhook", 0), ("email", 0)]


def test_a_delivery_that_has_ended_is_not_started_again(database: Database) -> None:
    event = record(database, WEBHOOK, EMAIL)
    send(database, event, DELIVERED)
    (intent,) = claim(database, "a")
    assert [d.channel for d in intent.deliveries] == ["email"]


def test_no_intent_has_two_holders(database: Database) -> None:
    for number in range(40):
        record(database, WEBHOOK, task=f"task-{number}")
    with ThreadPoolExecutor(8) as threads:
        batches = list(threads.map(lambda n: claim(database, f"token-{n}", limit=7), range(8)))
    held = [intent.intent_id for batch in batches for intent in batch]
    assert len(held) == len(set(held)) == 40


def test_a_claim_whose_answer_was_lost_gets_the_same_intents(database: Database) -> None:
    record(database, WEBHOOK)
    assert claim(database, "a") == claim(database, "a")
    assert claim(database, "b") == []


def test_a_dead_holders_intents_come_back(database: Database) -> None:
    record(database, WEBHOOK)
    (intent,) = claim(database, "dead", lease_s=0.05)
    time.sleep(0.1)
    (again,) = claim(database, "alive")
    assert again.intent_id == intent.intent_id
    database.write(partial(intents.done, token="dead", intent_ids=[intent.intent_id]))
    assert len(claim(database, "alive")) == 1
    database.write(partial(intents.done, token="alive", intent_ids=[intent.intent_id]))
    assert claim(database, "alive") == []


def test_a_released_intent_waits_its_delay(database: Database) -> None:
    record(database, WEBHOOK)
    (intent,) = claim(database, "a")
    database.write(partial(intents.release, token="a", intent_ids=[intent.intent_id], delay_s=0.2))
    assert claim(database, "b") == []
    time.sleep(0.25)
    assert [i.tries for i in claim(database, "b")] == [1]


def age(database: Database, event: str, seconds: int) -> None:
    """Lets an event look as if nothing had moved it for that long."""

    def work(connection: Connection) -> None:
        connection.execute(
            update(events).where(events.c.event_id == event).values(watch_at=events.c.watch_at - seconds * SECOND)
        )

    database.write(work)


def sweep(database: Database) -> int:
    return database.write(partial(watch.queue_stale, stale_s=60, limit=10))


def carried(database: Database) -> None:
    """Takes every intent out of the queue, as if Temporal had it."""
    ids = [i.intent_id for i in claim(database, "carried")]
    database.write(partial(intents.done, token="carried", intent_ids=ids))


def test_an_open_event_without_progress_is_restarted(database: Database) -> None:
    event = record(database, WEBHOOK)
    carried(database)
    assert sweep(database) == 0
    age(database, event, 120)
    assert sweep(database) == 1
    assert sweep(database) == 0
    assert [i.action for i in claim(database, "a")] == [Action.RESTART]


def test_an_event_whose_intent_still_waits_is_not_restarted(database: Database) -> None:
    age(database, record(database, WEBHOOK), 120)
    assert sweep(database) == 0


def test_an_event_that_ended_is_never_restarted(database: Database) -> None:
    event = record(database, WEBHOOK)
    carried(database)
    send(database, event, DELIVERED)
    age(database, event, 10_000_000)
    assert part(database, event).status == "completed"
    assert sweep(database) == 0


def test_a_round_is_bounded(database: Database) -> None:
    for number in range(15):
        age(database, record(database, WEBHOOK, task=f"task-{number}"), 120)
    for _ in range(2):
        carried(database)
    assert [sweep(database), sweep(database), sweep(database)] == [10, 5, 0]
