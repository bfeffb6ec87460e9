"""Every error answer: one shape, one table from our errors to statuses, and never a value from the request."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from domain.errors import (
    Conflict,
    DuplicateRiskNotAccepted,
    InvalidInput,
    NotFound,
    StatusChanged,
    StoreUnavailable,
    TidingsError,
)

STATUS_OF: dict[type[TidingsError], int] = {
    InvalidInput: 422,
    DuplicateRiskNotAccepted: 422,
    Conflict: 409,
    NotFound: 404,
    StoreUnavailable: 503,
}
"""The status of each error; a subclass has its parent's."""

RETRY_LATER = {"Retry-After": "1"}

Faults = list[dict[str, Any]]
"""What is wrong with a request: `[{"field": [...], "reason": "..."}]`."""


class Problem(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str
    details: Any = None


class ErrorAnswer(BaseModel):
    """The body of every error answer."""

    error: Problem


ERROR_ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (400, 401, 403, 404, 409, 413, 415, 422, 503)
}
"""For the OpenAPI document."""


class Refusal(Exception):
    """A request that the HTTP side itself turns down."""

    def __init__(
        self, status: int, code: str, message: str, *, details: Any = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.headers = headers

    def answer(self) -> Response:
        """The refusal as a response."""
        return _answer(self.status, self.code, self.message, self.details, self.headers)


def unauthenticated(*, presented: bool) -> Refusal:
    """No token, or (`presented`) one that proves nothing; the reason is never told."""
    challenge = 'Bearer error="invalid_token"' if presented else "Bearer"
    message = "The bearer token is not valid." if presented else "A bearer token is required."
    return Refusal(401, "unauthenticated", message, headers={"WWW-Authenticate": challenge})


def auth_unavailable() -> Refusal:
    """The issuer's keys cannot be fetched, so nothing is known about the token."""
    return Refusal(503, "auth_unavailable", "Tokens cannot be verified at the moment.", headers=RETRY_LATER)


def forbidden(permission: str) -> Refusal:
    """The token is good and does not allow this."""
    return Refusal(403, "forbidden", f"The permission {permission} is required.")


def body_too_large(limit: int) -> Refusal:
    """The body is longer than the configured limit."""
    return Refusal(413, "body_too_large", f"The body may have at most {limit} bytes.")


def body_too_slow() -> Refusal:
    """The body did not arrive in time."""
    return Refusal(408, "body_too_slow", "The body did not arrive in time.", headers={"Connection": "close"})


def unsupported_media_type() -> Refusal:
    """The body claims to be something other than JSON."""
    return Refusal(415, "unsupported_media_type", "Send the body as application/json.")


def invalid_json() -> Refusal:
    """The body is not JSON as we accept it."""
    return Refusal(
        400,
        "invalid_json",
        "The body must be JSON in UTF-8: finite numbers, whole characters, no name twice in an object, "
        "at most 64 levels.",
    )


def invalid(*field: str | int, reason: str) -> Refusal:
    """One field is not valid."""
    return _invalid([{"field": list(field), "reason": reason}])


def internal() -> Response:
    """The answer to a mistake of ours; it tells nothing."""
    return _answer(500, "internal", "Something went wrong on our side.")


def install(app: FastAPI) -> None:
    """Makes the app answer all its errors in our shape."""
    handlers: dict[type[Exception], Callable[[Request, Any], Response]] = {
        Refusal: lambda _, error: error.answer(),
        TidingsError: lambda _, error: _of_domain(error),
        RequestValidationError: lambda _, error: _invalid(_faults(error)).answer(),
        HTTPException: lambda _, error: _of_http(error),
    }
    for kind, handle in handlers.items():
        app.add_exception_handler(kind, _immediately(handle))


def _immediately(handle: Callable[[Request, Any], Response]) -> Any:
    """A plain function would be sent to a thread; these have nothing to wait for."""

    async def handler(request: Request, error: Exception) -> Response:
        return handle(request, error)

    return handler


def _answer(
    status: int,
    code: str,
    message: str,
    details: Any = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    body = {"error": {"code": code, "message": message, "details": details, **more}}
    return JSONResponse(body, status, headers)


def _of_domain(error: TidingsError) -> Response:
    status = next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), 500)
    if isinstance(error, StatusChanged):
        current = {"current_status": str(error.current_status)}
        return _answer(status, error.code, error.message, current, **current)
    return _answer(status, error.code, error.message, headers=RETRY_LATER if status == 503 else None)


def _of_http(error: HTTPException) -> Response:
    """What the router itself answers; its texts are replaced by ours."""
    if error.status_code == 405:
        return _answer(405, "method_not_allowed", "This method is not allowed here.", headers=error.headers)
    if error.status_code == 404:
        return _of_domain(NotFound())
    return _answer(error.status_code, "refused", "The request was refused.", headers=error.headers)


def _invalid(faults: Faults) -> Refusal:
    return Refusal(422, InvalidInput.code, InvalidInput().message, details=faults)


def _faults(error: RequestValidationError) -> Faults:
    return [{"field": _field(fault), "reason": fault["msg"]} for fault in error.errors()]


def _field(fault: dict[str, Any]) -> list[str | int]:
    """Where the fault is. The name of an unknown field was chosen by the caller, so it is an input value too."""
    _, *path = fault["loc"]
    return path[:-1] if fault["type"] == "extra_forbidden" else path
