"""Every error answer: one shape, one table from our errors to statuses, and never an input value."""

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from domain.errors import (
    Conflict,
    DuplicateRiskNotAccepted,
    InvalidInput,
    NotFound,
    StatusChanged,
    StoreUnavailable,
    TidingsError,
)

LOG = logging.getLogger("tidings.api")

MAX_DETAILS = 20
"""Most faults told of one request."""


class ErrorBody(BaseModel):
    """What went wrong."""

    code: str
    message: str
    details: Any = None


class ErrorAnswer(BaseModel):
    """The body of every answer from 400 on."""

    error: ErrorBody


class Rejected(TidingsError):
    """The request is refused."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers


STATUS_OF: dict[type[TidingsError], int] = {
    InvalidInput: 422,
    DuplicateRiskNotAccepted: 422,
    NotFound: 404,
    Conflict: 409,
    StoreUnavailable: 503,
}

_CODE_OF_STATUS = {404: "not_found", 405: "method_not_allowed"}


def answer(
    status: int, code: str, message: str, details: Any = None, headers: Mapping[str, str] | None = None, **extra: Any
) -> JSONResponse:
    """An error answer."""
    body = {"error": {"code": code, "message": message, "details": details, **extra}}
    return JSONResponse(body, status, dict(headers or {}))


def install(app: FastAPI) -> None:
    """Registers the handlers."""
    app.add_exception_handler(TidingsError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def _ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, TidingsError)
    if isinstance(error, Rejected):
        return answer(error.status, error.code, error.message, headers=error.headers)
    if isinstance(error, StatusChanged):
        current = error.current_status
        return answer(409, error.code, error.message, {"current_status": current}, current_status=current)
    status = next((status for kind, status in STATUS_OF.items() if isinstance(error, kind)), 500)
    return answer(status, error.code, error.message, headers={"Retry-After": "1"} if status == 503 else None)


def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    details = [{"field": _field(fault), "reason": fault["msg"]} for fault in error.errors()[:MAX_DETAILS]]
    return answer(422, "validation_failed", "The request is not valid.", details)


def _field(fault: dict[str, Any]) -> list[str | int]:
    """Where the fault is; a field that the caller invented is not repeated, for its name may be anything."""
    place = list(fault["loc"])
    return [*place[:-1], "(unknown)"] if fault["type"] == "extra_forbidden" else place


def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODE_OF_STATUS.get(error.status_code, "bad_request")
    return answer(error.status_code, code, "The request cannot be served.", headers=error.headers)


def _unexpected(request: Request, error: Exception) -> JSONResponse:
    LOG.error("unexpected", exc_info=error)
    return answer(500, "internal", "Something went wrong on our side.")
