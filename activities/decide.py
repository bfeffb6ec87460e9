"""The `decide` activity: a signal becomes an audited decision in the store, or a refusal with its reason."""

import re
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection
from temporalio import activity
from temporalio.exceptions import ApplicationError

from domain.decision import Decision, Door, Verdict
from domain.errors import InvalidInput, StoreUnavailable, TidingsError
from domain.lifecycle import Status
from store import decisions
from store.decisions import Applied
from store.threads import StoreThreads
from workflows import calls
from workflows.calls import DecideInput, DecideResult, DeliveryEnd, DeliveryRef

W = TypeVar("W", Verdict, Status)

MAX_TEXT = 1_000
"""Longest operator name or reason taken from a signal, in bytes of UTF-8."""

_DECISION_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


class Decide:
    """Applies decisions that reach a workflow."""

    def __init__(self, store: StoreThreads) -> None:
        self._store = store

    @activity.defn(name=calls.DECIDE)
    async def run(self, order: DecideInput) -> DecideResult:
        """Applies the decision once, however often it is asked."""
        try:
            applied = await self._store.of_event(order.event_id, partial(_apply, order=order))
        except StoreUnavailable as away:
            raise ApplicationError(away.message, type=away.code) from None
        except TidingsError as refusal:
            return DecideResult(accepted=False, reason=refusal.message)
        except Exception as fault:
            # Its text could hold what the operator wrote; histories keep the type only.
            raise ApplicationError("fault while deciding", type=type(fault).__name__) from None
        refs = [DeliveryRef(d.delivery_id, d.channel, d.generation) for d in applied.to_send]
        ends = [DeliveryEnd(end.delivery_id, end.channel, end.status.value) for end in applied.settled]
        return DecideResult(accepted=True, to_send=refs, settled=ends)


def _apply(connection: Connection, order: DecideInput) -> Applied:
    named = order.payload.get("decision_id")
    if (
        isinstance(named, str)
        and _DECISION_ID.fullmatch(named)
        and (known := decisions.recorded(connection, order.event_id, named))
    ):
        return known
    return decisions.apply(connection, _decision(order))


def _decision(order: DecideInput) -> Decision:
    fields = order.payload
    return Decision(
        decision_id=order.decision_id,
        event_id=order.event_id,
        verdict=_word(Verdict, fields, "decision"),
        expected_status=_word(Status, fields, "expected_status"),
        operator=_text(fields, "operator", required=True),
        reason=_text(fields, "reason"),
        door=Door.SIGNAL,
        channel=_text(fields, "channel") or None,
        allow_uncertain=True,  # naming `resend` for what one sees as uncertain is the acceptance
    )


def _word(words: type[W], fields: dict[str, Any], name: str) -> W:
    try:
        return words(str(fields.get(name)))
    except ValueError:
        raise InvalidInput(f"{name} is missing or not known") from None


def _text(fields: dict[str, Any], name: str, *, required: bool = False) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str) or (required and not value.strip()) or not _storable(value):
        raise InvalidInput(f"{name} is missing or not a short text")
    return value


def _storable(text: str) -> bool:
    try:
        return len(text.encode()) <= MAX_TEXT
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
