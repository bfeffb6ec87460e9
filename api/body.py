"""Reading a request's body: counted as it arrives, and strict JSON or nothing."""

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from api.auth import authorise, permission_of
from api.errors import Rejected

MAX_DEPTH = 64
MAX_DIGITS = 1_000
"""Longest number: JSON has no limit, Python's and other readers' have."""

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class StrictRequest(Request):
    """A request whose JSON holds nothing that another JSON reader would see differently."""

    async def json(self) -> Any:
        """The body as a value. Raises Rejected."""
        if not hasattr(self, "_json"):
            self._json = parse(await self._capped_body())
        return self._json

    async def body(self) -> bytes:
        """The body as bytes. Raises Rejected when it is larger than the application allows."""
        return await self._capped_body()

    async def _capped_body(self) -> bytes:
        if not hasattr(self, "_body"):
            try:
                self._body = await self._read(self.app.state.max_body_bytes)
            except ClientDisconnect:
                raise Rejected(400, "body_incomplete", "The body ended before its length.") from None
        return self._body

    async def _read(self, limit: int) -> bytes:
        chunks, size = [], 0
        async for chunk in self.stream():
            size += len(chunk)
            if size > limit:
                raise Rejected(413, "body_too_large", f"The body may have at most {limit} bytes.")
            chunks.append(chunk)
        return b"".join(chunks)


class StrictRoute(APIRoute):
    """A route that looks at the token first, and only then reads the body, strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a strict request whose body has been read."""
        handle = super().get_route_handler()
        permissions = [p for part in self.dependant.dependencies if (p := permission_of(part.call))]
        reads_body = self.body_field is not None

        async def strictly(request: Request) -> Response:
            for permission in permissions:
                await authorise(request, permission)
            _refuse_broken_path(request)
            strict = StrictRequest(request.scope, request.receive)
            if reads_body:
                _refuse_other_types(request)
                await strict.json()
            return await handle(strict)

        return strictly


def _refuse_other_types(request: Request) -> None:
    """A body may come without a type; one that says it is something else than JSON is a caller's mistake."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Rejected(415, "unsupported_media_type", "The Content-Type must be application/json.")


def _refuse_broken_path(request: Request) -> None:
    """Two paths with broken escapes would decode to the same text, and so name the same object."""
    raw: bytes = request.scope.get("raw_path") or b""
    if _BROKEN_ESCAPE.search(raw):
        raise Rejected(400, "invalid_path", "The path has an incomplete percent escape.")
    try:
        unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise Rejected(400, "invalid_path", "The path is not UTF-8.") from None


def parse(raw: bytes) -> Any:
    """Strict JSON: UTF-8 without surrogates, no duplicate names, no NaN, bounded depth and numbers. Raises Rejected."""
    try:
        text = raw.decode("utf-8")
        if _depth_bound(text) > MAX_DEPTH and _deepest(text) > MAX_DEPTH:
            _refuse(f"nested deeper than {MAX_DEPTH}")
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int
        )
    except UnicodeDecodeError:
        _refuse("not UTF-8")
    except json.JSONDecodeError as error:
        _refuse(f"malformed at character {error.pos}")
    if "\\u" in text:
        _refuse_surrogates(value)
    return value


def _refuse(why: str) -> NoReturn:
    raise Rejected(400, "invalid_json", f"The body is not valid JSON: {why}.")


def _depth_bound(text: str) -> int:
    """An upper bound that costs next to nothing; only a body above it is measured."""
    return text.count("[") + text.count("{")


def _deepest(text: str) -> int:
    """How deep brackets nest, not counting those inside strings."""
    depth = deepest = 0
    inside = escaped = False
    for char in text:
        if inside:
            inside = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            inside = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        _refuse("a name occurs twice in one object")
    return found


def _constant(name: str) -> NoReturn:
    _refuse("not a number")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        _refuse("a number is too large")
    return value


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        _refuse("a number is too long")
    return int(text)


def _refuse_surrogates(value: Any) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            _refuse("half of a surrogate pair")
    elif isinstance(value, dict):
        for name, part in value.items():
            _refuse_surrogates(name)
            _refuse_surrogates(part)
    elif isinstance(value, list):
        for part in value:
            _refuse_surrogates(part)
