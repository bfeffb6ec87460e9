"""Why a connection could not be made, read once from the errors that sockets, TLS and their libraries raise."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectFailure:
    """No connection, so nothing was sent."""

    code: str
    permanent: bool = False
    """True when asking again cannot help until somebody mends a certificate."""


def connect_failure(error: BaseException) -> ConnectFailure:
    """The reason behind `error`; libraries wrap the socket's own error, so the chain of causes is searched."""
    if isinstance(error, TimeoutError):  # what a deadline happened to interrupt is not the reason
        return _TIMED_OUT
    found = tuple(causes(error))
    for wanted, failure in _FAILURES:
        if any(isinstance(cause, wanted) for cause in found):
            return failure
    return ConnectFailure("connect_failed")


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and everything that led to it."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            yield from error.exceptions
        error = error.__cause__ or error.__context__


_TIMED_OUT = ConnectFailure("connect_timeout")
_FAILURES: tuple[tuple[type[BaseException], ConnectFailure], ...] = (
    (ssl.SSLCertVerificationError, ConnectFailure("tls_failed", permanent=True)),
    (ssl.SSLError, ConnectFailure("tls_failed")),
    (ConnectionRefusedError, ConnectFailure("connect_refused")),
    (TimeoutError, _TIMED_OUT),
)
