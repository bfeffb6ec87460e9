"""`/admin/api/notification-outbox`: operators list events, look at one, and decide about what failed or is in doubt."""

import base64
import binascii
import heapq
import uuid
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from api.auth import Actor, require
from api.body import StrictRoute
from api.fields import Body, Channel, Reason
from api.outbox_views import detail, item
from api.reach import Reach, Reached
from domain.channels import ChannelName
from domain.decision import Decision, Door, Verdict
from domain.errors import InvalidInput, NotFound
from domain.kinds import Kind, Source
from domain.lifecycle import Status
from store import decisions, outbox
from store.database import Database
from store.outbox import EventView, Filter, History, Position

router = APIRouter(prefix="/admin/api/notification-outbox", route_class=StrictRoute, tags=["operating"])


class RetryBody(Body):
    """Send again what failed, or, accepting that it may arrive twice, what is in doubt."""

    kind: Annotated[Kind, Field(strict=False)]
    expected_status: Annotated[Status, Field(strict=False)]
    channel: Channel | None = None
    reason: Reason = ""
    allow_uncertain: bool = False


class ResolveBody(Body):
    """Decide about one channel of an event that is in doubt; `resend` accepts that it may arrive twice."""

    channel: Channel
    expected_status: Literal["uncertain"]
    decision: Annotated[Verdict, Field(strict=False)]
    reason: Reason = ""


class ListQuery(BaseModel):
    """Which events to list; a filter that does not exist is refused, for it would list too much."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Source | None = None
    kind: Kind | None = None
    status: Status | None = None
    channel: ChannelName | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: Annotated[str | None, Field(max_length=2_000)] = None


@router.get("")
def list_events(
    query: Annotated[ListQuery, Query()], reach: Reached, actor: Annotated[Actor, require("runs:read")]
) -> JSONResponse:
    """Events of the caller's tenant, newest first."""
    limit, source = query.limit, query.source
    wanted = Filter(actor.tenant, source, query.kind, query.status, query.channel)
    read = partial(outbox.page, wanted=wanted, limit=limit + 1, after=_position(query.cursor))
    databases = [reach.stores.holding(source)] if source else reach.stores.each()
    newest_first = heapq.merge(
        *(database.read(read) for database in databases), key=lambda e: (e.created_at, e.event_id), reverse=True
    )
    found = list(newest_first)
    shown, more = found[:limit], len(found) > limit
    return JSONResponse(
        {
            "items": [item(event, _workflows_url(reach)) for event in shown],
            "next_cursor": _cursor(shown[-1]) if more else None,
        }
    )


@router.get("/{event_id}")
def show_event(event_id: str, reach: Reached, actor: Annotated[Actor, require("runs:read")]) -> JSONResponse:
    """One event with everything that happened to it."""
    return JSONResponse(detail(_history(reach, actor, event_id), _workflows_url(reach)))


@router.post("/{event_id}/retry", status_code=202)
def retry_event(
    event_id: str, body: RetryBody, reach: Reached, actor: Annotated[Actor, require("runs:write")]
) -> JSONResponse:
    """Opens a new cycle of attempts under the same event id."""
    if _history(reach, actor, event_id).event.kind is not body.kind:
        raise InvalidInput("kind is not this event's kind")
    decision = _decision(event_id, actor, Verdict.RESEND, body.expected_status, body.reason)
    return _decide(reach, actor, decision(channel=body.channel, allow_uncertain=body.allow_uncertain))


@router.post("/{event_id}/resolve", status_code=202)
def resolve_event(
    event_id: str, body: ResolveBody, reach: Reached, actor: Annotated[Actor, require("runs:write")]
) -> JSONResponse:
    """Ends the doubt about one channel."""
    decision = _decision(event_id, actor, body.decision, Status(body.expected_status), body.reason)
    return _decide(reach, actor, decision(channel=body.channel, allow_uncertain=True))


def _decision(event_id: str, actor: Actor, verdict: Verdict, expected: Status, reason: str) -> "partial[Decision]":
    return partial(
        Decision,
        decision_id=uuid.uuid4().hex,
        event_id=event_id,
        verdict=verdict,
        expected_status=expected,
        operator=actor.subject,
        reason=reason,
        door=Door.API,
        tenant=actor.tenant,
    )


def _decide(reach: Reach, actor: Actor, decision: Decision) -> JSONResponse:
    _holding(reach, decision.event_id).write(partial(decisions.apply, decision=decision))
    reach.nudge()
    history = _history(reach, actor, decision.event_id)
    return JSONResponse(item(history.event, _workflows_url(reach)), 202)


def _history(reach: Reach, actor: Actor, event_id: str) -> History:
    read = partial(outbox.history, tenant=actor.tenant, event_id=event_id)
    found = _holding(reach, event_id).read(read)
    if found is None:
        raise NotFound()
    return found


def _holding(reach: Reach, event_id: str) -> Database:
    database = reach.stores.of_event(event_id)
    if database is None:
        raise NotFound()
    return database


def _workflows_url(reach: Reach) -> str | None:
    temporal = reach.settings.temporal
    return f"{temporal.ui_url.rstrip('/')}/namespaces/{temporal.namespace}/workflows" if temporal.ui_url else None


def _cursor(event: EventView) -> str:
    return base64.urlsafe_b64encode(f"{event.created_at} {event.event_id}".encode()).decode()


def _position(cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    try:
        created_at, _, event_id = base64.b64decode(cursor, altchars=b"-_", validate=True).decode().partition(" ")
        position = Position(int(created_at), event_id)
    except (binascii.Error, ValueError):
        raise InvalidInput("cursor is not one that a list has answered") from None
    if not event_id or not 0 <= position.created_at < 2**63:
        raise InvalidInput("cursor is not one that a list has answered")
    return position
