"""The errors of the domain. Each class's docstring is the sentence shown to a caller.

TidingsError
├── InvalidInput          422
├── Conflict              409
│   ├── StatusChanged     409, names the current status
│   └── DeduplicationConflict  409
├── NotFound              404
├── DuplicateRiskNotAccepted   422
├── StoreUnavailable      503
│   └── StoreFault        503, and no use in trying again
└── NotSendable           carries the outcome of a send that never began
"""

from domain.outcome import Outcome


class TidingsError(Exception):
    """Something went wrong."""

    code = "error"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())

    @property
    def message(self) -> str:
        """The sentence for a caller; never holds an input value."""
        return str(self.args[0])


class InvalidInput(TidingsError):
    """The request is not valid."""

    code = "validation_failed"


class Conflict(TidingsError):
    """The request contradicts what is already recorded."""

    code = "conflict"


class StatusChanged(Conflict):
    """The status is no longer the one you saw."""

    code = "status_changed"

    def __init__(self, current_status: str) -> None:
        super().__init__()
        self.current_status = current_status


class DeduplicationConflict(Conflict):
    """This deduplication key was already used with another body."""

    code = "Notification.DeduplicationConflict"


class NotFound(TidingsError):
    """There is no such object."""

    code = "not_found"


class DuplicateRiskNotAccepted(TidingsError):
    """This message may already have been sent; set allow_uncertain to true to accept that it may arrive twice."""

    code = "allow_uncertain_required"


class StoreUnavailable(TidingsError):
    """The database does not answer; nothing was recorded."""

    code = "store_unavailable"


class StoreFault(StoreUnavailable):
    """The database refused what was to be written."""


class NotSendable(TidingsError):
    """The send could not begin."""

    code = "not_sendable"

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome
