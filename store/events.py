"""Recording an event with its deliveries and start intent, and keeping its status in step with them."""

from sqlalchemy import Connection, bindparam, insert, select, update

from domain.event import EventRef, NewEvent
from domain.identity import delivery_id
from domain.kinds import Kind
from domain.lifecycle import FINAL, Status, event_status
from store import intents
from store.clock import SECOND
from store.locking import LockedEvent
from store.schema import deliveries, events

_ADD_EVENT = insert(events)
_ADD_DELIVERIES = insert(deliveries)
_FOLLOW = (
    update(events)
    .where(events.c.event_id == bindparam("event"))
    .values(status=bindparam("to"), updated_at=bindparam("now"), completed_at=bindparam("ended"))
)

START_GRACE_S = 20
"""An event that nothing touched for this long after its acceptance is started again by the sweep."""


def add(connection: Connection, now: int, new: NewEvent) -> EventRef:
    """Records an event that is known not to exist yet; a race for the same id fails and is run again by the caller."""
    connection.execute(
        _ADD_EVENT,
        {
            "event_id": new.event_id,
            "tenant": new.tenant,
            "source": new.source.value,
            "kind": new.kind.value,
            "status": Status.PENDING.value,
            "snapshot": new.snapshot.to_json(),
            "created_at": now,
            "updated_at": now,
            "watch_at": now + START_GRACE_S * SECOND,
        },
    )
    connection.execute(_ADD_DELIVERIES, _delivery_rows(now, new))
    intents.add(connection, now, new.event_id, intents.Action.START)
    return EventRef(new.event_id, new.kind)


def existing(connection: Connection, event_ids: list[str]) -> list[EventRef]:
    """Those of the given events that are recorded, in the order given."""
    rows = connection.execute(select(events.c.event_id, events.c.kind).where(events.c.event_id.in_(event_ids)))
    found = {row.event_id: EventRef(row.event_id, Kind(row.kind)) for row in rows}
    return [found[identity] for identity in event_ids if identity in found]


def follow(connection: Connection, event: LockedEvent, changed: dict[str, Status]) -> Status:
    """Sets the event's status from its deliveries', some of which have just changed, when that makes a difference."""
    status = event_status(event.statuses_with(changed))
    if status is not event.status:
        ended = event.now if status in FINAL else None
        connection.execute(_FOLLOW, {"event": event.event_id, "to": status.value, "now": event.now, "ended": ended})
    return status


def _delivery_rows(now: int, new: NewEvent) -> list[dict[str, object]]:
    return [
        {
            "delivery_id": delivery_id(new.event_id, target.channel, target.recipient),
            "event_id": new.event_id,
            "position": position,
            "channel": target.channel,
            "destination": target.recipient.encode(),
            "secret_ref": target.secret_ref,
            "status": Status.PENDING.value,
            "generation": 0,
            "cycle_attempts": 0,
            "total_attempts": 0,
            "created_at": now,
            "updated_at": now,
        }
        for position, target in enumerate(new.targets)
    ]
