"""`PUT /api/tasks/{taskId}`: a business system reports a run of a task."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse
from pydantic import Field

from api.auth import Actor, require
from api.body import StrictRoute
from api.fields import Brand, CallerId, CamelBody, Channel, Recipient, Url
from api.reach import Reached
from domain.errors import InvalidInput
from domain.event import EventRef, Target
from domain.task import Callback, RunReport, TaskStatus
from store import tasks

router = APIRouter(route_class=StrictRoute, tags=["recording"])

MAX_TARGETS = 50


class CallbackBody(CamelBody):
    """Where the end of the run is reported to a machine."""

    url: Url
    secret_ref: CallerId | None = None


class TargetBody(CamelBody):
    """Whom to tell on which channel."""

    channel: Channel
    recipient: Recipient
    secret_ref: CallerId | None = None

    def target(self) -> Target:
        """The target as the domain has it."""
        return Target(self.channel, self.recipient, self.secret_ref)


class RunBody(CamelBody):
    """A report about one run of the task."""

    run_id: CallerId
    status: Annotated[TaskStatus, Field(strict=False)]
    parent_task_id: CallerId | None = None
    result: Any = None
    brand: Brand | None = None
    callback: CallbackBody | None = None
    delivery: Annotated[tuple[TargetBody, ...], Field(max_length=MAX_TARGETS, strict=False)] = ()
    native: TargetBody | None = None


class EventAnswer(CamelBody):
    """An event that the fact caused."""

    event_id: str
    kind: str


class RunAnswer(CamelBody):
    """The run as recorded."""

    task_id: str
    status: str
    events: list[EventAnswer]


@router.put("/api/tasks/{taskId:path}", response_model=RunAnswer)
def put_task(
    task_id: Annotated[CallerId, Path(alias="taskId")],
    body: RunBody,
    reach: Reached,
    actor: Annotated[Actor, require("tasks:write")],
) -> JSONResponse:
    """Records a report. The move to a terminal status creates the events, once; repeating it answers the same."""
    recorded = reach.stores.state.write(partial(tasks.record, report=_report(body, task_id, actor, reach)))
    if recorded.events:
        reach.nudge()
    return JSONResponse({"taskId": task_id, "status": recorded.status, "events": shown(recorded.events)})


def shown(events: list[EventRef]) -> list[dict[str, str]]:
    """Events as answered."""
    return [{"eventId": event.event_id, "kind": event.kind} for event in events]


def _report(body: RunBody, task_id: str, actor: Actor, reach: Reached) -> RunReport:
    targets = tuple(target.target() for target in body.delivery)
    if len({(target.channel, target.recipient) for target in targets}) < len(targets):
        raise InvalidInput("delivery names the same channel and recipient twice")
    return RunReport(
        tenant=actor.tenant,
        task_id=task_id,
        run_id=body.run_id,
        status=body.status,
        brand=body.brand or reach.settings.brand,
        parent_task_id=body.parent_task_id,
        result=body.result,
        callback=Callback(body.callback.url, body.callback.secret_ref) if body.callback else None,
        delivery=targets,
        native=body.native.target() if body.native else None,
    )
