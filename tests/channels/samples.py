"""A message to send, and what its outcome is compared with."""

from dataclasses import replace
from typing import Any

from channels.port import Channel, Message
from domain.errors import NotSendable
from domain.outcome import Outcome, OutcomeKind, Stage

MESSAGE = Message(
    event_id="k7_notification_42",
    tenant="acme",
    delivery_id="delivery-42",
    kind="user_notification",
    occurred_at="2026-03-04T05:06:07Z",
    destination="somebody@example.com",
    secret_ref="main",
    brand="Tidings",
    title="Build finished",
    text="All 12 steps passed.",
    data={"zebra": 1, "alpha": {"n": 1.5, "big": 12345678901234567890}, "text": "héllo"},
)

Told = tuple[OutcomeKind, Stage, str]


def message(**changes: Any) -> Message:
    """The sample with some fields changed."""
    return replace(MESSAGE, **changes)


async def deliver(channel: Channel, sample: Message) -> Outcome:
    """Prepares and sends; a message that cannot be sent gives the outcome that says so."""
    try:
        prepared = await channel.prepare(sample)
    except NotSendable as refused:
        return refused.outcome
    return await prepared.send()


def told(outcome: Outcome) -> Told:
    """What a table of expectations lists."""
    return outcome.kind, outcome.stage, outcome.code
