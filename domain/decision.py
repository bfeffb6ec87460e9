"""What an operator may decide about deliveries that failed or may have gone out, and the rules for it."""

from dataclasses import dataclass
from enum import StrEnum

from domain.errors import DuplicateRiskNotAccepted, InvalidInput, StatusChanged
from domain.lifecycle import Move, Status


class Verdict(StrEnum):
    """The three decisions."""

    RESEND = "resend"
    DELIVERED = "delivered"
    ABANDON = "abandon"


MOVE_OF: dict[Verdict, Move] = {
    Verdict.RESEND: Move.RESEND,
    Verdict.DELIVERED: Move.CONFIRM,
    Verdict.ABANDON: Move.ABANDON,
}


class Door(StrEnum):
    """The way a decision came in; recorded with it."""

    API = "api"
    SIGNAL = "signal"


@dataclass(frozen=True, slots=True)
class Decision:
    """An operator's order about one event's deliveries in one observed status."""

    decision_id: str
    """Chosen by whoever asks, so that asking again is the same decision."""
    event_id: str
    verdict: Verdict
    expected_status: Status
    operator: str
    reason: str
    door: Door
    channel: str | None = None
    """Only deliveries on this channel; None: every delivery of the event in the expected status."""
    allow_uncertain: bool = False
    """The operator accepts that an uncertain message may arrive twice."""
    tenant: str | None = None
    """The operator's tenant; None only for the Temporal door, whose namespace is already the operator's."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A delivery as the decision finds it."""

    delivery_id: str
    channel: str
    status: Status


def chosen(decision: Decision, event_status: Status, deliveries: list[Candidate]) -> list[str]:
    """The ids of the deliveries the decision moves.

    Raises InvalidInput for a status nobody may decide about, StatusChanged when the observed status is not the
    present one, DuplicateRiskNotAccepted when a resend of an uncertain delivery does not accept the risk.
    """
    expected = decision.expected_status
    if expected not in (Status.FAILED, Status.UNCERTAIN):
        raise InvalidInput("expected_status must be failed or uncertain")
    if expected is Status.FAILED and decision.verdict is not Verdict.RESEND:
        raise InvalidInput("a failed delivery can only be sent again")
    matching = [d for d in deliveries if decision.channel in (None, d.channel)]
    if not matching:
        channels = ", ".join(sorted({d.channel for d in deliveries}))
        raise InvalidInput(f"the event has no delivery on this channel, only on: {channels}")
    present = [d.delivery_id for d in matching if d.status is expected]
    if decision.channel is None and event_status is not expected:
        raise StatusChanged(event_status)
    if not present:
        raise StatusChanged(matching[0].status)
    if expected is Status.UNCERTAIN and decision.verdict is Verdict.RESEND and not decision.allow_uncertain:
        raise DuplicateRiskNotAccepted()
    return present
