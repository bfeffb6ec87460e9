"""The recovery sweep: finds open events that nothing has moved for a while and queues a restart for each."""

from sqlalchemy import Connection, exists, func, insert, select, update

from domain.lifecycle import Status
from store.clock import db_now, micros
from store.intents import Action
from store.schema import deliveries, events, intents

OPEN = (Status.PENDING.value, Status.PROCESSING.value, Status.UNCERTAIN.value)

PARKED_PAUSE_FACTOR = 10
"""An uncertain event waits for a person, perhaps for days: it is looked at this much less often."""


def queue_stale(connection: Connection, *, stale_s: float, limit: int) -> int:
    """Queues a restart for up to `limit` stale events and looks at each again only later; how many were queued.

    A restart of an event whose workflow lives changes nothing, so finding too many is harmless; each is looked at again
    after `stale_s`, or that long after its next attempt is due.
    """
    now = connection.scalar(select(db_now()))
    assert now is not None
    stale = (
        select(events.c.event_id, events.c.status)
        .where(events.c.status.in_(OPEN), events.c.watch_at <= now)
        .where(~exists().where(intents.c.event_id == events.c.event_id))
        .order_by(events.c.watch_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    found = {row.event_id: Status(row.status) for row in connection.execute(stale)}
    if not found:
        return 0
    connection.execute(
        insert(intents),
        [
            {
                "event_id": event_id,
                "action": Action.RESTART.value,
                "created_at": now,
                "available_at": now,
                "tries": 0,
            }
            for event_id in found
        ],
    )
    due = _next_due(connection, list(found))
    for event_id, status in found.items():
        pause = stale_s * PARKED_PAUSE_FACTOR if status is Status.UNCERTAIN else stale_s
        look_again = max(now, due.get(event_id, 0)) + micros(pause)
        connection.execute(update(events).where(events.c.event_id == event_id).values(watch_at=look_again))
    return len(found)


def _next_due(connection: Connection, event_ids: list[str]) -> dict[str, int]:
    query = (
        select(deliveries.c.event_id, func.max(deliveries.c.next_attempt_at))
        .where(deliveries.c.event_id.in_(event_ids), deliveries.c.next_attempt_at.is_not(None))
        .group_by(deliveries.c.event_id)
    )
    return {event_id: due for event_id, due in connection.execute(query)}
