"""Locking an event with all its deliveries: the first statement of a transaction that changes more than one.

Taking the event's row first, always, is what keeps two workers on one event from waiting for each other.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from domain.lifecycle import Status
from store.clock import db_now
from store.schema import deliveries, events

# Statements on the way of every event are built once: building one costs ten times as much as running it.
_LOCK = (
    select(
        db_now().label("now"),
        events.c.tenant,
        events.c.status.label("event_status"),
        deliveries.c.delivery_id,
        deliveries.c.channel,
        deliveries.c.status,
        deliveries.c.generation,
        deliveries.c.cycle_attempts,
        deliveries.c.total_attempts,
        deliveries.c.lease_token,
        deliveries.c.lease_until,
    )
    .join(deliveries, deliveries.c.event_id == events.c.event_id)
    .where(events.c.event_id == bindparam("event"))
    .with_for_update()
)


@dataclass(frozen=True, slots=True)
class LockedDelivery:
    """A delivery's row as it stands under the lock."""

    delivery_id: str
    channel: str
    status: Status
    generation: int
    cycle_attempts: int
    total_attempts: int
    lease_token: str | None
    lease_until: int | None


@dataclass(frozen=True, slots=True)
class LockedEvent:
    """An event's row with its deliveries under the lock."""

    event_id: str
    tenant: str
    status: Status
    now: int
    deliveries: dict[str, LockedDelivery]

    def statuses_with(self, changed: dict[str, Status]) -> list[Status]:
        """Every delivery's status once the given ones have changed."""
        return [changed.get(key, delivery.status) for key, delivery in self.deliveries.items()]


def lock_event(connection: Connection, event_id: str) -> LockedEvent | None:
    """Locks the event and its deliveries until the transaction ends; None when there is no such event."""
    rows = connection.execute(_LOCK, {"event": event_id}).all()
    if not rows:
        return None
    found = {
        row.delivery_id: LockedDelivery(
            row.delivery_id,
            row.channel,
            Status(row.status),
            row.generation,
            row.cycle_attempts,
            row.total_attempts,
            row.lease_token,
            row.lease_until,
        )
        for row in rows
    }
    return LockedEvent(event_id, rows[0].tenant, Status(rows[0].event_status), rows[0].now, found)
