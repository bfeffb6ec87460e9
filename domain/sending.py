"""What an outcome does to the delivery it belongs to: the rule that decides between retry, failure and doubt."""

from domain.lifecycle import Move
from domain.outcome import Outcome, OutcomeKind


def move_for(outcome: Outcome, *, native: bool, exhausted: bool) -> Move:
    """The move after one attempt.

    A safe channel's receiver knows our event id, so an uncertain attempt there is repeated like a transient one. On a
    native channel it never is, however many attempts are left.
    """
    if outcome.kind is OutcomeKind.DELIVERED:
        return Move.DELIVER
    if outcome.kind is OutcomeKind.UNCERTAIN and native:
        return Move.DOUBT
    if outcome.kind is OutcomeKind.REJECTED or exhausted:
        return Move.REJECT
    return Move.RETRY


def move_after_lost_lease(*, native: bool, exhausted: bool) -> Move:
    """The move when the sender died between `sending` and its outcome: the bytes may have left."""
    if native:
        return Move.DOUBT
    return Move.REJECT if exhausted else Move.RELEASE
