"""Approvals: opening one records its prompt; deciding it ends a prompt that has not left yet."""

from dataclasses import dataclass

from sqlalchemy import Connection, Row, and_, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from domain.approval import ApprovalStatus, NewApproval
from domain.errors import Conflict, NotFound
from domain.event import EventRef
from domain.identity import event_id
from domain.kinds import Kind
from store import deliveries, events
from store.clock import db_now
from store.schema import approvals


@dataclass(frozen=True, slots=True)
class Recorded:
    """An approval as recorded."""

    status: ApprovalStatus
    event: EventRef
    created: bool


def open_approval(connection: Connection, new: NewApproval) -> Recorded:
    """Records an approval and its prompt; the same again changes nothing. Raises Conflict for another request."""
    found = _look(connection, new.tenant, new.approval_id)
    event = new.event()
    if found.status is not None:
        if found.fingerprint != new.fingerprint:
            raise Conflict("this approval id is already used by another request")
        return Recorded(ApprovalStatus(found.status), EventRef(event.event_id, event.kind), created=False)
    connection.execute(
        insert(approvals),
        {
            "tenant": new.tenant,
            "approval_id": new.approval_id,
            "status": ApprovalStatus.PENDING.value,
            "fingerprint": new.fingerprint,
            "created_at": found.now,
        },
    )
    return Recorded(ApprovalStatus.PENDING, events.add(connection, found.now, event), created=True)


def decide(connection: Connection, tenant: str, approval_id: str, decision: ApprovalStatus) -> Recorded:
    """Records the decision once and skips a prompt that has not left. Raises NotFound, Conflict."""
    prompt = event_id(tenant, Kind.APPROVAL_PROMPT, approval_id)
    ref = EventRef(prompt, Kind.APPROVAL_PROMPT)
    found = _look(connection, tenant, approval_id)
    if found.status is None:
        raise NotFound()
    pending = and_(_is(tenant, approval_id), approvals.c.status == ApprovalStatus.PENDING.value)
    decided = update(approvals).where(pending).values(status=decision.value, decided_at=found.now)
    if connection.execute(decided).rowcount == 1:
        deliveries.call_off(connection, prompt, "approval_decided")
        return Recorded(decision, ref, created=True)
    present = ApprovalStatus(_look(connection, tenant, approval_id).status)
    if present is not decision:
        raise Conflict(f"this approval is already {present.value}")
    return Recorded(present, ref, created=False)


def _is(tenant: str, approval_id: str) -> ColumnElement[bool]:
    return and_(approvals.c.tenant == tenant, approvals.c.approval_id == approval_id)


def _look(connection: Connection, tenant: str, approval_id: str) -> Row[tuple[int, str | None, str | None]]:
    found = select(approvals.c.status, approvals.c.fingerprint).where(_is(tenant, approval_id)).subquery()
    query = select(
        db_now().label("now"),
        select(found.c.status).scalar_subquery().label("status"),
        select(found.c.fingerprint).scalar_subquery().label("fingerprint"),
    )
    return connection.execute(query).one()
