"""HTTP statuses, for receivers that dedupe and for providers that do not."""

from datetime import UTC, datetime

import pytest

from channels.statuses import MAX_RETRY_AFTER_S, native_outcome, retry_after_s, safe_outcome
from domain.outcome import OutcomeKind, Scope, Stage

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)

DELIVERED, REJECTED = OutcomeKind.DELIVERED, OutcomeKind.REJECTED
TRANSIENT, UNCERTAIN = OutcomeKind.TRANSIENT, OutcomeKind.UNCERTAIN

# status: (safe, native, scope)
TABLE = {
    101: (REJECTED, UNCERTAIN, Scope.MESSAGE),
    200: (DELIVERED, DELIVERED, Scope.MESSAGE),
    204: (DELIVERED, DELIVERED, Scope.MESSAGE),
    301: (REJECTED, REJECTED, Scope.CONFIG),
    304: (REJECTED, REJECTED, Scope.CONFIG),
    307: (REJECTED, REJECTED, Scope.CONFIG),
    400: (REJECTED, REJECTED, Scope.MESSAGE),
    401: (REJECTED, REJECTED, Scope.CREDENTIAL),
    402: (REJECTED, TRANSIENT, Scope.ACCOUNT),
    403: (REJECTED, REJECTED, Scope.CREDENTIAL),
    404: (REJECTED, REJECTED, Scope.MESSAGE),
    405: (REJECTED, REJECTED, Scope.MESSAGE),
    408: (TRANSIENT, TRANSIENT, Scope.MESSAGE),
    409: (REJECTED, UNCERTAIN, Scope.MESSAGE),
    410: (REJECTED, REJECTED, Scope.RECIPIENT),
    413: (REJECTED, REJECTED, Scope.MESSAGE),
    421: (REJECTED, TRANSIENT, Scope.MESSAGE),
    422: (REJECTED, REJECTED, Scope.MESSAGE),
    425: (TRANSIENT, TRANSIENT, Scope.MESSAGE),
    429: (TRANSIENT, TRANSIENT, Scope.MESSAGE),
    451: (REJECTED, REJECTED, Scope.MESSAGE),
    500: (TRANSIENT, UNCERTAIN, Scope.MESSAGE),
    501: (TRANSIENT, REJECTED, Scope.CONFIG),
    502: (TRANSIENT, UNCERTAIN, Scope.MESSAGE),
    503: (TRANSIENT, UNCERTAIN, Scope.MESSAGE),
    504: (TRANSIENT, UNCERTAIN, Scope.MESSAGE),
    505: (TRANSIENT, REJECTED, Scope.CONFIG),
    522: (TRANSIENT, UNCERTAIN, Scope.MESSAGE),
    599: (TRANSIENT, UNCERTAIN, Scope.MESSAGE),
}


@pytest.mark.parametrize("status", TABLE)
def test_a_status_means_one_thing_to_each_kind_of_channel(status: int) -> None:
    safe, native = safe_outcome(status, {}), native_outcome(status, {})
    assert (safe.kind, native.kind, safe.scope) == TABLE[status]
    assert (safe.code, safe.http_status, safe.stage) == (f"http_{status}", status, Stage.ANSWERED)
    assert (native.code, native.scope) == (safe.code, safe.scope)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("0", 0.0),
        (" 120 ", 120.0),
        ("99999999999999999999", MAX_RETRY_AFTER_S),
        ("Wed, 04 Mar 2026 05:07:07 GMT", 60.0),
        ("Wed, 04 Mar 2026 05:07:07", 60.0),
        ("Wed, 04 Mar 2026 05:00:00 GMT", 0.0),
        ("Wed, 04 Mar 2099 05:00:00 GMT", MAX_RETRY_AFTER_S),
        ("Wed, 99 Mar 2026 05:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_capped(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, NOW) == seconds


def test_only_a_transient_answer_carries_the_wait() -> None:
    assert safe_outcome(503, {"retry-after": "7"}).retry_after_s == 7.0
    assert safe_outcome(404, {"retry-after": "7"}).retry_after_s is None
    assert native_outcome(503, {"retry-after": "7"}).retry_after_s is None
