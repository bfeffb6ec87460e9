"""An operator's decision: compare-and-set on the observed status, the audit row and the intent in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from domain.decision import MOVE_OF, Candidate, Decision, Door, Verdict, chosen
from domain.errors import NotFound
from domain.lifecycle import Status, after
from store import events, intents
from store.intents import Action, OpenDelivery
from store.locking import LockedEvent, lock_event
from store.schema import decisions, deliveries
from store.schema import events as events_table


@dataclass(frozen=True, slots=True)
class Settled:
    """A delivery that a decision ended."""

    delivery_id: str
    channel: str
    status: Status


@dataclass(frozen=True, slots=True)
class Applied:
    """What a decision did."""

    event_status: Status
    to_send: tuple[OpenDelivery, ...]
    """Deliveries that are open again, each under its new generation."""
    settled: tuple[Settled, ...]
    """Deliveries that the decision ended."""


def apply(connection: Connection, decision: Decision) -> Applied:
    """Applies a decision once; the same `decision_id` again answers the same and changes nothing.

    Raises NotFound (also for another tenant's event), StatusChanged, InvalidInput, DuplicateRiskNotAccepted.
    """
    event = lock_event(connection, decision.event_id)
    if event is None or decision.tenant not in (None, event.tenant):
        raise NotFound()
    if known := recorded(connection, decision.event_id, decision.decision_id):
        return known
    candidates = [Candidate(d.delivery_id, d.channel, d.status) for d in event.deliveries.values()]
    moved = chosen(decision, event.status, candidates)
    status = after(decision.expected_status, MOVE_OF[decision.verdict])
    for delivery in moved:
        _move(connection, event, delivery, decision.verdict, status)
    connection.execute(insert(decisions), [_audit_row(event, decision, delivery, status) for delivery in moved])
    events.follow(connection, event, dict.fromkeys(moved, status))
    if decision.door is Door.API:
        intents.add(connection, event.now, decision.event_id, Action.DECIDE, decision.decision_id)
    applied = recorded(connection, decision.event_id, decision.decision_id)
    assert applied is not None
    return applied


def recorded(connection: Connection, event_id: str, decision_id: str) -> Applied | None:
    """What a decision of this event did, or None when it was never recorded."""
    query = (
        select(
            decisions.c.delivery_id,
            decisions.c.verdict,
            decisions.c.new_status,
            decisions.c.generation,
            deliveries.c.channel,
        )
        .join(deliveries, deliveries.c.delivery_id == decisions.c.delivery_id)
        .where(decisions.c.decision_id == decision_id, decisions.c.event_id == event_id)
        .order_by(deliveries.c.position)
    )
    rows = connection.execute(query).all()
    return _applied(connection, event_id, rows) if rows else None


def _applied(connection: Connection, event_id: str, rows: Sequence[Row[Any, Any, Any, Any, Any]]) -> Applied:
    status = connection.scalars(select(events_table.c.status).where(events_table.c.event_id == event_id)).one()
    resend = Verdict(rows[0].verdict) is Verdict.RESEND
    return Applied(
        Status(status),
        tuple(OpenDelivery(row.delivery_id, row.channel, row.generation) for row in rows) if resend else (),
        () if resend else tuple(Settled(row.delivery_id, row.channel, Status(row.new_status)) for row in rows),
    )


def _move(connection: Connection, event: LockedEvent, delivery_id: str, verdict: Verdict, status: Status) -> None:
    changes: dict[str, object] = {"status": status.value, "updated_at": event.now, "next_attempt_at": None}
    if verdict is Verdict.RESEND:
        changes |= {"generation": deliveries.c.generation + 1, "cycle_attempts": 0}
    elif verdict is Verdict.DELIVERED:
        changes |= {"delivered_at": event.now}
    connection.execute(update(deliveries).where(deliveries.c.delivery_id == delivery_id).values(**changes))


def _audit_row(event: LockedEvent, decision: Decision, delivery_id: str, status: Status) -> dict[str, object]:
    generation = event.deliveries[delivery_id].generation
    return {
        "decision_id": decision.decision_id,
        "delivery_id": delivery_id,
        "event_id": decision.event_id,
        "verdict": decision.verdict.value,
        "observed_status": decision.expected_status.value,
        "new_status": status.value,
        "generation": generation + 1 if decision.verdict is Verdict.RESEND else generation,
        "operator": decision.operator,
        "reason": decision.reason,
        "door": decision.door.value,
        "decided_at": event.now,
    }
