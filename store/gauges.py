"""Counts for metrics: read-only, one round trip each, no name of anybody in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select

from domain.kinds import Source
from domain.lifecycle import Status
from store.clock import SECOND, db_now
from store.schema import deliveries, events, intents

_OPEN = (Status.PENDING.value, Status.PROCESSING.value)


@dataclass(frozen=True, slots=True)
class Gauges:
    """One source's outbox now."""

    events: Mapping[Status, int] = field(default_factory=dict)
    oldest_pending_s: float = 0.0
    """Age of the oldest event that is still on its way."""
    expired_leases: int = 0
    """Deliveries whose sender has died and that nobody has taken over yet."""
    waiting_intents: int = 0
    """Intents that Temporal does not have yet."""


def read(connection: Connection, source: Source) -> Gauges:
    """The gauges of one source."""
    of_source = events.c.source == source.value
    by_status = connection.execute(select(events.c.status, func.count()).where(of_source).group_by(events.c.status))
    oldest = select((db_now() - func.min(events.c.created_at)).label("age"))
    expired = (
        select(func.count())
        .select_from(deliveries.join(events, events.c.event_id == deliveries.c.event_id))
        .where(of_source, deliveries.c.status == Status.PROCESSING.value, deliveries.c.lease_until <= db_now())
    )
    waiting = (
        select(func.count()).select_from(intents.join(events, events.c.event_id == intents.c.event_id)).where(of_source)
    )
    age = connection.scalar(oldest.where(of_source, events.c.status.in_(_OPEN)))
    return Gauges(
        events={Status(row[0]): row[1] for row in by_status},
        oldest_pending_s=(age or 0) / SECOND,
        expired_leases=connection.scalars(expired).one(),
        waiting_intents=connection.scalars(waiting).one(),
    )
