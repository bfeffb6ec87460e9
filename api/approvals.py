"""`/api/approvals`: a business system opens an approval, and reports what was decided."""

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse

from api.auth import Actor, require
from api.body import StrictRoute
from api.fields import Brand, CallerId, CamelBody, TitleText, Url
from api.reach import Reached
from api.tasks import EventAnswer, TargetBody, shown
from domain.approval import ApprovalStatus, NewApproval
from store import approvals
from store.approvals import Recorded

router = APIRouter(route_class=StrictRoute, tags=["recording"])


class PromptBody(TargetBody):
    """Whom to ask, and where they decide."""

    url: Url | None = None


class ApprovalBody(CamelBody):
    """An approval to open."""

    approval_id: CallerId
    title: TitleText
    prompt: PromptBody
    brand: Brand | None = None


class DecisionBody(CamelBody):
    """What was decided."""

    decision: Literal["approved", "rejected"]


class ApprovalAnswer(CamelBody):
    """The approval as recorded."""

    approval_id: str
    status: str
    events: list[EventAnswer]


@router.post(
    "/api/approvals", response_model=ApprovalAnswer, status_code=202, responses={200: {"description": "Known"}}
)
def post_approval(
    body: ApprovalBody, reach: Reached, actor: Annotated[Actor, require("approvals:write")]
) -> JSONResponse:
    """Opens an approval and asks for the decision: 202 when it is new, 200 when the same request is known."""
    new = NewApproval(
        tenant=actor.tenant,
        approval_id=body.approval_id,
        title=body.title,
        brand=body.brand or reach.settings.brand,
        prompt=body.prompt.target(),
        url=body.prompt.url,
    )
    recorded = reach.stores.config.write(partial(approvals.open_approval, new=new))
    reach.nudge()
    return _shown(body.approval_id, recorded, 202 if recorded.created else 200)


@router.post("/api/approvals/{approvalId:path}/decision", response_model=ApprovalAnswer)
def post_decision(
    approval_id: Annotated[CallerId, Path(alias="approvalId")],
    body: DecisionBody,
    reach: Reached,
    actor: Annotated[Actor, require("approvals:write")],
) -> JSONResponse:
    """Records the decision; a prompt that has not left yet is skipped. 409 when another decision is recorded."""
    decide = partial(
        approvals.decide, tenant=actor.tenant, approval_id=approval_id, decision=ApprovalStatus(body.decision)
    )
    return _shown(approval_id, reach.stores.config.write(decide), 200)


def _shown(approval_id: str, recorded: Recorded, status: int) -> JSONResponse:
    body = {"approvalId": approval_id, "status": recorded.status, "events": shown([recorded.event])}
    return JSONResponse(body, status)
