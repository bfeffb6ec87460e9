"""What the process asks of the world, by name: activities, signals, their one argument and their timeouts.

Histories remember these names and shapes; a test pins them.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy, SearchAttributeKey

WORKFLOW = "Notification"
DELIVER = "deliver"
DECIDE = "decide"
RESOLVE = "resolve"

TENANT = SearchAttributeKey.for_keyword("TidingsTenant")
KIND = SearchAttributeKey.for_keyword("TidingsKind")
STATE = SearchAttributeKey.for_keyword("TidingsState")

DECISION_FIELDS = ("decision_id", "channel", "expected_status", "decision", "operator", "reason")
"""What a `resolve` signal may say; all are texts."""

MAX_FIELD_CHARS = 2_000
"""A longer field counts as missing."""

STATE_OPEN = "open"
STATE_UNCERTAIN = "uncertain"

HEARTBEAT_TIMEOUT = timedelta(seconds=12)
"""How soon Temporal notices a dead worker. Sends that take less than a third of it never heartbeat."""

DELIVER_TIMEOUT = timedelta(minutes=20)
"""Longer than any channel's deadline: an SMTP relay may take ten minutes to answer the final dot."""

DECIDE_TIMEOUT = timedelta(seconds=60)

LOST_SENDER = ("TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat", "WorkerShutdown")
"""Failures that say nothing about the send. Temporal must not repeat them: the process asks the store what happened."""

DELIVER_RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=30),
    non_retryable_error_types=list(LOST_SENDER),
)
"""For faults of ours (a database away): a transient send names its own delay, and the store counts the attempts."""

DECIDE_RETRY = RetryPolicy(maximum_interval=timedelta(seconds=30))


@dataclass(frozen=True)
class DeliveryRef:
    """A delivery to see through, and the generation that an operator's last decision gave it."""

    delivery_id: str
    channel: str
    generation: int


@dataclass(frozen=True)
class DeliveryEnd:
    """A delivery that a decision ended, and how."""

    delivery_id: str
    channel: str
    status: str


@dataclass(frozen=True)
class EventInput:
    """The workflow's argument: ids only."""

    event_id: str
    deliveries: list[DeliveryRef]
    search_attributes: bool = True
    """False where the namespace does not know them: setting one would then block the workflow."""


@dataclass(frozen=True)
class DeliverInput:
    """One delivery to send."""

    event_id: str
    delivery_id: str
    generation: int


@dataclass(frozen=True)
class DeliverResult:
    """Where the delivery stands: `completed`, `skipped`, `failed`, `uncertain`, or `superseded` by a later decision."""

    status: str
    code: str | None = None


@dataclass(frozen=True)
class DecideInput:
    """A decision to apply."""

    event_id: str
    decision_id: str
    """Used when the payload has none, so that asking again is the same decision."""
    payload: dict[str, Any]
    """The signal as received: fields of the contract, or only the id of a decision that is already recorded."""


@dataclass(frozen=True)
class DecideResult:
    """What became of a decision."""

    accepted: bool
    reason: str = ""
    """Why it was refused; a code of ours."""
    to_send: list[DeliveryRef] = field(default_factory=list)
    settled: list[DeliveryEnd] = field(default_factory=list)
