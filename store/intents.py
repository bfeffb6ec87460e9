"""The outbox queue: what must still be carried to Temporal.

A row is gone once it was carried; the event keeps the history.
"""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from domain.lifecycle import FINAL, Status
from store.clock import db_now, micros
from store.columns import Micros
from store.schema import deliveries, events, intents

_ADD = insert(intents)
_AVAILABLE = (
    select(intents.c.intent_id)
    .where(intents.c.available_at <= db_now())
    .order_by(intents.c.available_at, intents.c.intent_id)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)
_LEASE = (
    update(intents)
    .where(intents.c.intent_id.in_(bindparam("ids", expanding=True)))
    .values(lease_token=bindparam("token"), available_at=db_now() + bindparam("lease", type_=Micros))
)
_HELD = (
    select(
        intents,
        events.c.tenant,
        events.c.kind,
        deliveries.c.delivery_id,
        deliveries.c.channel,
        deliveries.c.generation,
        deliveries.c.status,
    )
    .join(events, events.c.event_id == intents.c.event_id)
    .join(deliveries, deliveries.c.event_id == intents.c.event_id)
    .where(intents.c.lease_token == bindparam("token"))
    .order_by(intents.c.intent_id, deliveries.c.position)
)
_DONE = delete(intents).where(
    intents.c.intent_id.in_(bindparam("ids", expanding=True)), intents.c.lease_token == bindparam("token")
)


class Action(StrEnum):
    """What to ask of Temporal."""

    START = "start"
    """First start: a closed run of this id means that it already happened."""
    RESTART = "restart"
    """The sweep found the event open without progress: a closed or lost run is replaced."""
    DECIDE = "decide"
    """Carry an operator's decision to the running workflow, or to a new one."""


@dataclass(frozen=True, slots=True)
class OpenDelivery:
    """A delivery the workflow has to see through."""

    delivery_id: str
    channel: str
    generation: int


@dataclass(frozen=True, slots=True)
class Intent:
    """One claimed intent with all that starting a workflow needs."""

    intent_id: int
    event_id: str
    tenant: str
    kind: str
    action: str
    """An `Action`, or a word of a newer release, which this one leaves to it."""
    decision_id: str | None
    tries: int
    deliveries: tuple[OpenDelivery, ...]


def add(connection: Connection, now: int, event_id: str, action: Action, decision_id: str | None = None) -> None:
    """Queues an intent, available at once."""
    connection.execute(
        _ADD,
        {
            "event_id": event_id,
            "action": action.value,
            "decision_id": decision_id,
            "created_at": now,
            "available_at": now,
            "tries": 0,
        },
    )


def claim(connection: Connection, token: str, lease_s: float, limit: int) -> list[Intent]:
    """Takes up to `limit` available intents under a lease; an intent whose holder died is available again after it.

    Called again with the same token it answers with what that token already holds.
    """
    held = _held(connection, token)
    if not held:
        _take(connection, token, lease_s, limit)
        held = _held(connection, token)
    return held


def done(connection: Connection, token: str, intent_ids: list[int]) -> None:
    """Removes carried intents; one that another token holds by now stays."""
    if intent_ids:
        connection.execute(_DONE, {"token": token, "ids": intent_ids})


def release(connection: Connection, token: str, intent_ids: list[int], delay_s: float) -> None:
    """Gives back intents that could not be carried, available again after `delay_s`."""
    if intent_ids:
        mine = (intents.c.intent_id.in_(intent_ids), intents.c.lease_token == token)
        later = db_now() + micros(delay_s)
        connection.execute(
            update(intents).where(*mine).values(lease_token=None, available_at=later, tries=intents.c.tries + 1)
        )


def _take(connection: Connection, token: str, lease_s: float, limit: int) -> None:
    ids = list(connection.scalars(_AVAILABLE, {"limit": limit}))
    if ids:
        connection.execute(_LEASE, {"ids": ids, "token": token, "lease": micros(lease_s)})


def _held(connection: Connection, token: str) -> list[Intent]:
    held: dict[int, Intent] = {}
    for row in connection.execute(_HELD, {"token": token}):
        known = held.get(row.intent_id)
        open_ones = known.deliveries if known else ()
        if Status(row.status) not in FINAL:
            open_ones = (*open_ones, OpenDelivery(row.delivery_id, row.channel, row.generation))
        held[row.intent_id] = Intent(
            row.intent_id,
            row.event_id,
            row.tenant,
            row.kind,
            row.action,
            row.decision_id,
            row.tries,
            open_ones,
        )
    return list(held.values())
