"""What an HTTP status means for a send, where the provider has no better table of its own."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from domain.outcome import Outcome, OutcomeKind, Scope, Stage, delivered

MAX_RETRY_AFTER_S = 86_400.0

_LATER = frozenset({408, 425, 429})
_LATER_NATIVE = _LATER | {402, 421}
_UNSUPPORTED = frozenset({501, 505})
_SCOPES = {401: Scope.CREDENTIAL, 402: Scope.ACCOUNT, 403: Scope.CREDENTIAL, 410: Scope.RECIPIENT}


def safe_outcome(status: int, headers: Mapping[str, str]) -> Outcome:
    """For receivers that dedupe on our id: a repeat is harmless, so every server fault is asked again."""
    return _outcome(status, headers, _safe_kind)


def native_outcome(status: int, headers: Mapping[str, str]) -> Outcome:
    """For providers where a repeat reaches a person: a server fault may hide a message that went out."""
    return _outcome(status, headers, _native_kind)


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Seconds asked for by a Retry-After header, given as seconds or as an HTTP date; None when it says neither."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), MAX_RETRY_AFTER_S)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError, TypeError):
        return None
    wait = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now
    return min(max(wait.total_seconds(), 0.0), MAX_RETRY_AFTER_S)


def _outcome(status: int, headers: Mapping[str, str], kind_of: Callable[[int], OutcomeKind]) -> Outcome:
    code = f"http_{status}"
    if 200 <= status < 300:
        return delivered(code, http_status=status)
    kind = kind_of(status)
    wait = retry_after_s(headers.get("retry-after"), datetime.now(UTC)) if kind is OutcomeKind.TRANSIENT else None
    return Outcome(kind, code, Stage.ANSWERED, _scope(status), wait, http_status=status)


def _safe_kind(status: int) -> OutcomeKind:
    return OutcomeKind.TRANSIENT if status in _LATER or status >= 500 else OutcomeKind.REJECTED


def _native_kind(status: int) -> OutcomeKind:
    if status in _LATER_NATIVE:
        return OutcomeKind.TRANSIENT
    if status < 200 or status == 409 or (status >= 500 and status not in _UNSUPPORTED):
        return OutcomeKind.UNCERTAIN
    return OutcomeKind.REJECTED


def _scope(status: int) -> Scope:
    """A redirect or an unsupported method is a wrong URL; the rest is the message's own fault unless listed."""
    if 300 <= status < 400 or status in _UNSUPPORTED:
        return Scope.CONFIG
    return _SCOPES.get(status, Scope.MESSAGE)
