"""The statements of the send protocol, built once: building one costs ten times as much as running it."""

from sqlalchemy import bindparam, insert, select, update

from domain.lifecycle import Move, Status, after
from store.clock import db_now
from store.columns import Micros
from store.schema import attempts, deliveries
from store.schema import events as events_table

LOAD = (
    select(
        db_now().label("now"),
        events_table.c.event_id,
        events_table.c.tenant,
        events_table.c.kind,
        events_table.c.snapshot,
        events_table.c.created_at,
        events_table.c.unwanted_code,
        deliveries.c.delivery_id,
        deliveries.c.channel,
        deliveries.c.destination,
        deliveries.c.secret_ref,
        deliveries.c.status,
        deliveries.c.generation,
        deliveries.c.total_attempts,
        deliveries.c.cycle_attempts,
        deliveries.c.next_attempt_at,
        deliveries.c.last_error_code,
    )
    .join(deliveries, deliveries.c.event_id == events_table.c.event_id)
    .where(deliveries.c.delivery_id == bindparam("delivery"))
)
CLAIM_EVENT = (
    update(events_table)
    .where(events_table.c.event_id == bindparam("event"), events_table.c.status == Status.PENDING.value)
    .values(status=Status.PROCESSING.value, updated_at=db_now())
)
CLAIM = (
    update(deliveries)
    .where(
        deliveries.c.delivery_id == bindparam("delivery"),
        deliveries.c.generation == bindparam("seen_generation"),
        deliveries.c.status == Status.PENDING.value,
        deliveries.c.total_attempts == bindparam("seen_attempts"),
    )
    .values(
        status=after(Status.PENDING, Move.CLAIM).value,
        lease_token=bindparam("token"),
        lease_until=db_now() + bindparam("lease", type_=Micros),
        cycle_attempts=deliveries.c.cycle_attempts + 1,
        total_attempts=bindparam("number"),
        next_attempt_at=None,
        provider=bindparam("by"),
        payload_hash=bindparam("hash"),
        updated_at=db_now(),
    )
)
BEGIN_ATTEMPT = insert(attempts).values(
    token=bindparam("token"),
    event_id=bindparam("event_id"),
    delivery_id=bindparam("delivery_id"),
    generation=bindparam("generation"),
    number=bindparam("number"),
    provider=bindparam("provider"),
    started_at=db_now(),
)
CLOSE = (
    update(deliveries)
    .where(deliveries.c.delivery_id == bindparam("delivery"))
    .values(
        status=bindparam("to"),
        lease_token=None,
        lease_until=None,
        cycle_attempts=bindparam("cycle"),
        total_attempts=bindparam("total"),
        next_attempt_at=bindparam("again_at"),
        last_error_code=bindparam("error"),
        provider_message_id=bindparam("message_id"),
        delivered_at=bindparam("delivered"),
        updated_at=bindparam("now"),
    )
)
END_ATTEMPT = (
    update(attempts)
    .where(attempts.c.token == bindparam("of_token"))
    .values(
        {
            name: bindparam(name)
            for name in (
                *("outcome", "stage", "code", "scope", "http_status"),
                *("provider_message_id", "status_after", "ended_at"),
            )
        }
    )
)
