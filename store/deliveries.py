"""The send protocol's transactions: read, claim, renew, settle, recover, and the ways of not sending at all.

Every change is a compare-and-set on what the caller saw: status and generation when claiming, token and lease after.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from domain.kinds import Kind
from domain.lifecycle import Move, Status, after
from domain.outcome import Outcome, OutcomeKind, Stage
from domain.sending import move_after_lost_lease, move_for
from store import delivery_sql, events
from store.clock import SECOND, db_now, micros
from store.locking import LockedDelivery, LockedEvent, lock_event
from store.schema import attempts, deliveries
from store.schema import events as events_table

LEASE_EXPIRED = "lease_expired"
"""Code of an attempt whose sender vanished between `sending` and its outcome."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A delivery and its event as read before a send; nothing is locked."""

    now: int
    event_id: str
    tenant: str
    kind: Kind
    snapshot: bytes
    created_at: int
    delivery_id: str
    channel: str
    destination: bytes
    secret_ref: str | None
    status: Status
    generation: int
    total_attempts: int
    cycle_attempts: int
    next_attempt_at: int | None
    last_error_code: str | None
    unwanted_code: str | None
    """Why nobody needs the event any more; None while it is wanted."""

    @property
    def wait_s(self) -> float:
        """Seconds until the next attempt is due; 0 when it is."""
        return max(0, (self.next_attempt_at or 0) - self.now) / SECOND


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's wish to send: who it is (token), for how long, and which state it saw."""

    event_id: str
    delivery_id: str
    generation: int
    number: int
    """Number of this attempt over the delivery's life: one more than was seen."""
    token: str
    lease_s: float
    provider: str
    payload_hash: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where a delivery stands after a store call."""

    status: Status
    code: str | None
    delay_s: float = 0.0
    """Seconds until the next attempt is due, for `pending`; until the lease ends, for `processing`."""
    fenced: bool = False
    """The caller's lease was gone: its result was kept as evidence and changed nothing."""


@dataclass(frozen=True, slots=True)
class Result:
    """A finished attempt to be settled."""

    event_id: str
    delivery_id: str
    token: str
    outcome: Outcome
    native: bool
    max_attempts: int
    delay_s: float
    """When it is retried, seconds until then."""


def load(connection: Connection, delivery_id: str) -> Loaded | None:
    """Reads what a send needs; None when the store does not know the delivery, which must stop the send."""
    row = connection.execute(delivery_sql.LOAD, {"delivery": delivery_id}).one_or_none()
    if row is None:
        return None
    return Loaded(
        row.now,
        row.event_id,
        row.tenant,
        Kind(row.kind),
        row.snapshot,
        row.created_at,
        row.delivery_id,
        row.channel,
        row.destination,
        row.secret_ref,
        Status(row.status),
        row.generation,
        row.total_attempts,
        row.cycle_attempts,
        row.next_attempt_at,
        row.last_error_code,
        row.unwanted_code,
    )


def claim(connection: Connection, wish: Claim) -> bool:
    """Takes the lease and writes the attempt as `sending`; False when the delivery is no longer as it was seen."""
    connection.execute(delivery_sql.CLAIM_EVENT, {"event": wish.event_id})
    taken = connection.execute(
        delivery_sql.CLAIM,
        {
            "delivery": wish.delivery_id,
            "seen_generation": wish.generation,
            "seen_attempts": wish.number - 1,
            "token": wish.token,
            "lease": micros(wish.lease_s),
            "number": wish.number,
            "by": wish.provider,
            "hash": wish.payload_hash,
        },
    )
    if taken.rowcount == 0:
        held = select(deliveries.c.delivery_id).where(deliveries.c.lease_token == wish.token)
        return connection.scalar(held.where(deliveries.c.delivery_id == wish.delivery_id)) is not None
    connection.execute(
        delivery_sql.BEGIN_ATTEMPT,
        {
            "token": wish.token,
            "event_id": wish.event_id,
            "delivery_id": wish.delivery_id,
            "generation": wish.generation,
            "number": wish.number,
            "provider": wish.provider,
        },
    )
    return True


def renew(connection: Connection, delivery_id: str, token: str, lease_s: float) -> bool:
    """Extends a lease that is still held and still valid; False means that the send must count itself fenced."""
    renewed = connection.execute(
        update(deliveries)
        .where(
            deliveries.c.delivery_id == delivery_id,
            deliveries.c.lease_token == token,
            deliveries.c.status == Status.PROCESSING.value,
            deliveries.c.lease_until > db_now(),
        )
        .values(lease_until=db_now() + micros(lease_s))
    )
    return renewed.rowcount == 1


def settle(connection: Connection, result: Result) -> Verdict:
    """Writes an attempt's outcome, its delivery's and its event's status together, if the lease still holds."""
    event = lock_event(connection, result.event_id)
    delivery = event.deliveries.get(result.delivery_id) if event else None
    if event is None or delivery is None:
        return Verdict(Status.FAILED, "unknown_delivery", fenced=True)
    if delivery.lease_token != result.token or _lease_left(event, delivery) <= 0:
        return _late(connection, event, delivery, result)
    outcome = result.outcome
    move = move_for(outcome, native=result.native, exhausted=delivery.cycle_attempts >= result.max_attempts)
    status = _close(connection, event, delivery, outcome, move, result.delay_s)
    _end_attempt(connection, result.token, outcome, status, event.now)
    return Verdict(status, _shown_code(outcome), result.delay_s)


def recover(connection: Connection, seen: Loaded, *, native: bool, max_attempts: int) -> Verdict | None:
    """Ends the open attempt of a sender that died.

    While the lease lives it answers `processing` and the time left; None when the delivery has moved on and must be
    read again.
    """
    event = lock_event(connection, seen.event_id)
    delivery = event.deliveries.get(seen.delivery_id) if event else None
    if event is None or delivery is None or delivery.status is not Status.PROCESSING:
        return None
    if (left := _lease_left(event, delivery)) > 0:
        return Verdict(Status.PROCESSING, None, left / SECOND)
    outcome = Outcome(OutcomeKind.UNCERTAIN, LEASE_EXPIRED, Stage.BODY)
    move = move_after_lost_lease(native=native, exhausted=delivery.cycle_attempts >= max_attempts)
    status = _close(connection, event, delivery, outcome, move, 0.0)
    if delivery.lease_token:
        _end_attempt(connection, delivery.lease_token, outcome, status, event.now)
    return Verdict(status, LEASE_EXPIRED)


def refuse(connection: Connection, seen: Loaded, result: Result) -> Verdict | None:
    """Records an attempt that failed before anything could leave; None when the delivery has moved on."""
    event = lock_event(connection, seen.event_id)
    delivery = event.deliveries.get(seen.delivery_id) if event else None
    if event is None or delivery is None:
        return None
    known = connection.scalar(select(attempts.c.status_after).where(attempts.c.token == result.token))
    if known is not None:
        return Verdict(Status(known), _shown_code(result.outcome), result.delay_s)
    if delivery.status is not Status.PENDING or delivery.generation != seen.generation:
        return None
    exhausted = delivery.cycle_attempts + 1 >= result.max_attempts
    move = move_for(result.outcome, native=result.native, exhausted=exhausted)
    status = _close(connection, event, delivery, result.outcome, move, result.delay_s, counted=False)
    connection.execute(
        insert(attempts).values(
            token=result.token,
            event_id=seen.event_id,
            delivery_id=seen.delivery_id,
            generation=seen.generation,
            number=delivery.total_attempts + 1,
            started_at=event.now,
            **_ending(result.outcome, status, event.now),
        )
    )
    return Verdict(status, _shown_code(result.outcome), result.delay_s)


def call_off(connection: Connection, event_id: str, code: str) -> None:
    """Marks an event as no longer wanted and ends what has not left yet; what is being sent keeps its true outcome."""
    connection.execute(update(events_table).where(events_table.c.event_id == event_id).values(unwanted_code=code))
    skip_waiting(connection, event_id, code)


def skip_waiting(connection: Connection, event_id: str, code: str) -> None:
    """Ends every delivery of the event that waits for an attempt."""
    event = lock_event(connection, event_id)
    if event is None:
        return
    waiting = [d.delivery_id for d in event.deliveries.values() if d.status is Status.PENDING]
    if not waiting:
        return
    skipped = after(Status.PENDING, Move.SKIP)
    connection.execute(
        update(deliveries)
        .where(deliveries.c.delivery_id.in_(waiting))
        .values(status=skipped.value, last_error_code=code, next_attempt_at=None, updated_at=event.now)
    )
    events.follow(connection, event, dict.fromkeys(waiting, skipped))


def _close(
    connection: Connection,
    event: LockedEvent,
    delivery: LockedDelivery,
    outcome: Outcome,
    move: Move,
    delay_s: float,
    *,
    counted: bool = True,
) -> Status:
    status = after(Status.PROCESSING, move)
    again = status is Status.PENDING
    step = 0 if counted else 1
    connection.execute(
        delivery_sql.CLOSE,
        {
            "delivery": delivery.delivery_id,
            "to": status.value,
            "cycle": delivery.cycle_attempts + step,
            "total": delivery.total_attempts + step,
            "again_at": event.now + micros(delay_s) if again else None,
            "error": _shown_code(outcome),
            "message_id": outcome.provider_message_id,
            "delivered": event.now if status is Status.COMPLETED else None,
            "now": event.now,
        },
    )
    events.follow(connection, event, {delivery.delivery_id: status})
    return status


def _end_attempt(connection: Connection, token: str, outcome: Outcome, status: Status, now: int) -> None:
    connection.execute(delivery_sql.END_ATTEMPT, {"of_token": token, **_ending(outcome, status, now)})


def _ending(outcome: Outcome, status: Status, now: int) -> dict[str, object]:
    return {
        "outcome": outcome.kind.value,
        "stage": outcome.stage.value,
        "code": outcome.code,
        "scope": outcome.scope.value,
        "http_status": outcome.http_status,
        "provider_message_id": outcome.provider_message_id,
        "status_after": status.value,
        "ended_at": now,
    }


def _late(connection: Connection, event: LockedEvent, delivery: LockedDelivery, result: Result) -> Verdict:
    """The lease is gone: either this very result was settled and the answer was lost, or it is evidence and no more."""
    found = connection.execute(
        select(attempts.c.outcome, attempts.c.code, attempts.c.status_after).where(attempts.c.token == result.token)
    ).one_or_none()
    outcome = result.outcome
    if found and found.status_after and (found.outcome, found.code) == (outcome.kind.value, outcome.code):
        return Verdict(Status(found.status_after), _shown_code(outcome), result.delay_s)
    connection.execute(
        update(attempts)
        .where(attempts.c.token == result.token)
        .values(late_outcome=outcome.kind.value, late_code=outcome.code, late_at=event.now)
    )
    return Verdict(delivery.status, _shown_code(outcome), fenced=True)


def _lease_left(event: LockedEvent, delivery: LockedDelivery) -> int:
    return (delivery.lease_until or 0) - event.now


def _shown_code(outcome: Outcome) -> str | None:
    return None if outcome.kind is OutcomeKind.DELIVERED else outcome.code
