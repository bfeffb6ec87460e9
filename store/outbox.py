"""What operators see of events: pages of summaries, one event's history. Never a snapshot, a body or a destination."""

from dataclasses import dataclass, fields, replace
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Row, Table, and_, exists, or_, select

from domain.kinds import Kind, Source
from domain.lifecycle import Status
from store.schema import attempts, decisions, deliveries, events


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events to list; None leaves a column open."""

    tenant: str
    source: Source | None = None
    kind: Kind | None = None
    status: Status | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page ended: pages run from the newest event to the oldest."""

    created_at: int
    event_id: str


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """One delivery as shown."""

    delivery_id: str
    channel: str
    provider: str | None
    status: Status
    generation: int
    cycle_attempts: int
    total_attempts: int
    next_attempt_at: int | None
    last_error_code: str | None
    provider_message_id: str | None
    payload_hash: str | None
    created_at: int
    updated_at: int
    delivered_at: int | None


@dataclass(frozen=True, slots=True)
class EventView:
    """One event as shown."""

    event_id: str
    source: Source
    kind: Kind
    status: Status
    created_at: int
    updated_at: int
    completed_at: int | None
    deliveries: tuple[DeliveryView, ...]

    @property
    def position(self) -> Position:
        """Where this event stands in the list."""
        return Position(self.created_at, self.event_id)


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One provider call as recorded."""

    delivery_id: str
    token: str
    generation: int
    number: int
    provider: str | None
    outcome: str | None
    stage: str | None
    code: str | None
    http_status: int | None
    provider_message_id: str | None
    status_after: str | None
    started_at: int
    ended_at: int | None
    late_outcome: str | None
    late_code: str | None
    late_at: int | None


@dataclass(frozen=True, slots=True)
class DecisionView:
    """One operator's decision about one delivery."""

    decision_id: str
    delivery_id: str
    verdict: str
    observed_status: str
    new_status: str
    operator: str
    reason: str
    door: str
    decided_at: int


@dataclass(frozen=True, slots=True)
class History:
    """An event with everything that happened to it."""

    event: EventView
    attempts: tuple[AttemptView, ...]
    decisions: tuple[DecisionView, ...]


def page(connection: Connection, wanted: Filter, limit: int, after: Position | None) -> list[EventView]:
    """Up to `limit` events, newest first, strictly after the given position."""
    query = select(*_SHOWN).where(*_conditions(wanted))
    if after:
        same_moment = and_(events.c.created_at == after.created_at, events.c.event_id < after.event_id)
        query = query.where(or_(events.c.created_at < after.created_at, same_moment))
    query = query.order_by(events.c.created_at.desc(), events.c.event_id.desc()).limit(limit)
    rows = connection.execute(query).all()
    parts = _deliveries_of(connection, [row.event_id for row in rows])
    return [_event(row, parts.get(row.event_id, ())) for row in rows]


def history(connection: Connection, tenant: str, event_id: str) -> History | None:
    """One event of this tenant with its attempts and decisions in order; None when there is none."""
    row = connection.execute(
        select(*_SHOWN).where(events.c.event_id == event_id, events.c.tenant == tenant)
    ).one_or_none()
    if row is None:
        return None
    tried = select(*_columns(attempts, AttemptView)).where(attempts.c.event_id == event_id)
    decided = select(*_columns(decisions, DecisionView)).where(decisions.c.event_id == event_id)
    return History(
        _event(row, _deliveries_of(connection, [event_id]).get(event_id, ())),
        tuple(AttemptView(*line) for line in connection.execute(tried.order_by(attempts.c.attempt_id))),
        tuple(DecisionView(*line) for line in connection.execute(decided.order_by(decisions.c.decided_at))),
    )


_SHOWN = [column for column in events.c if column is not events.c.snapshot]
"""An event without its snapshot, which never leaves the database but to be sent."""


def _columns(table: Table, view: type) -> list[Column[Any]]:
    """The table's columns that a view shows, in the view's order."""
    return [table.c[field.name] for field in fields(view)]


def _conditions(wanted: Filter) -> list[ColumnElement[bool]]:
    conditions = [events.c.tenant == wanted.tenant]
    if wanted.source:
        conditions.append(events.c.source == wanted.source.value)
    if wanted.kind:
        conditions.append(events.c.kind == wanted.kind.value)
    if wanted.status:
        conditions.append(events.c.status == wanted.status.value)
    if wanted.channel:
        on_channel = and_(deliveries.c.event_id == events.c.event_id, deliveries.c.channel == wanted.channel)
        conditions.append(exists().where(on_channel))
    return conditions


def _deliveries_of(connection: Connection, event_ids: list[str]) -> dict[str, tuple[DeliveryView, ...]]:
    query = (
        select(deliveries.c.event_id, *_columns(deliveries, DeliveryView))
        .where(deliveries.c.event_id.in_(event_ids))
        .order_by(deliveries.c.event_id, deliveries.c.position)
    )
    found: dict[str, tuple[DeliveryView, ...]] = {}
    for event_id, *line in connection.execute(query):
        view = DeliveryView(*line)
        found[event_id] = (*found.get(event_id, ()), replace(view, status=Status(view.status)))
    return found


def _event(row: Row[Any], parts: tuple[DeliveryView, ...]) -> EventView:
    return EventView(
        row.event_id,
        Source(row.source),
        Kind(row.kind),
        Status(row.status),
        row.created_at,
        row.updated_at,
        row.completed_at,
        parts,
    )
