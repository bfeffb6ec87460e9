"""The states of a delivery, every move between them, and how an event's status follows from its deliveries."""

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """Where a delivery, or the event it belongs to, stands."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNCERTAIN = "uncertain"


class Move(StrEnum):
    """What moves a delivery from one state to the next."""

    CLAIM = "claim"
    """A worker took the lease and committed `sending` (a send that cannot even be prepared passes here in one step)."""
    DELIVER = "deliver"
    """The outcome was `delivered`."""
    RETRY = "retry"
    """The outcome was `transient` and attempts are left in this cycle."""
    RELEASE = "release"
    """A lease died, the channel is safe and attempts are left: open it again."""
    REJECT = "reject"
    """The outcome was `rejected`, or `transient` with no attempt left."""
    DOUBT = "doubt"
    """The outcome was `uncertain`, or a lease died on a native channel."""
    SKIP = "skip"
    """Nobody needs it any more, or policy left nothing to send."""
    RESEND = "resend"
    """An operator decided to send again; the generation rises."""
    CONFIRM = "confirm"
    """An operator saw that it had arrived."""
    ABANDON = "abandon"
    """An operator gave it up."""


TRANSITIONS: dict[tuple[Status, Move], Status] = {
    (Status.PENDING, Move.CLAIM): Status.PROCESSING,
    (Status.PENDING, Move.SKIP): Status.SKIPPED,
    (Status.PROCESSING, Move.DELIVER): Status.COMPLETED,
    (Status.PROCESSING, Move.RETRY): Status.PENDING,
    (Status.PROCESSING, Move.RELEASE): Status.PENDING,
    (Status.PROCESSING, Move.REJECT): Status.FAILED,
    (Status.PROCESSING, Move.DOUBT): Status.UNCERTAIN,
    (Status.FAILED, Move.RESEND): Status.PENDING,
    (Status.UNCERTAIN, Move.RESEND): Status.PENDING,
    (Status.UNCERTAIN, Move.CONFIRM): Status.COMPLETED,
    (Status.UNCERTAIN, Move.ABANDON): Status.FAILED,
}

OPERATOR_MOVES = frozenset({Move.RESEND, Move.CONFIRM, Move.ABANDON})
"""Moves that only an audited decision may make."""

FINAL = frozenset({Status.COMPLETED, Status.SKIPPED, Status.FAILED})
"""States in which nothing more happens by itself."""


def after(status: Status, move: Move) -> Status:
    """The state that `move` leads to; a KeyError is a programming error, never input."""
    return TRANSITIONS[status, move]


def event_status(deliveries: Iterable[Status]) -> Status:
    """An event's status: uncertain if any delivery is, else in flight while any is, else failed, completed, skipped."""
    present = set(deliveries)
    if present == {Status.PENDING}:
        return Status.PENDING
    if Status.UNCERTAIN in present:
        return Status.UNCERTAIN
    if present & {Status.PENDING, Status.PROCESSING}:
        return Status.PROCESSING
    for status in (Status.FAILED, Status.COMPLETED):
        if status in present:
            return status
    return Status.SKIPPED
