"""Reading a JSON body: a cap on the bytes received, a deadline, and JSON without its traps."""

import asyncio
import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from starlette.requests import Request

from api.problems import body_too_large, body_too_slow, invalid_json, unsupported_media_type

MAX_DEPTH = 64
DEADLINE_S = 30.0
"""How long a body may take to arrive."""


class JsonRequest(Request):
    """A request whose body has been read and parsed."""

    def __init__(self, request: Request, raw: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._raw = raw
        self._value = parse(raw)

    async def body(self) -> bytes:
        """The bytes as received."""
        return self._raw

    async def json(self) -> Any:
        """What they say."""
        return self._value


async def read(request: Request, limit: int) -> JsonRequest:
    """Reads and parses the body. Raises a Refusal."""
    if not _may_be_json(request.headers.get("content-type", "")):
        raise unsupported_media_type()
    try:
        async with asyncio.timeout(DEADLINE_S):
            raw = await _capped(request, limit)
    except TimeoutError:
        raise body_too_slow() from None
    return JsonRequest(request, raw)


def parse(raw: bytes) -> Any:
    """The value of a JSON text. Raises a Refusal for anything that another reader could take differently."""
    try:
        text = raw.decode("utf-8")
        value = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # an escape can name half a character
    except (ValueError, RecursionError):
        raise invalid_json() from None
    # Few brackets cannot nest deeply, and counting them is far cheaper than walking.
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _deeper_than(MAX_DEPTH, value):
        raise invalid_json()
    return value


def _may_be_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type in ("", "application/json") or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )


async def _capped(request: Request, limit: int) -> bytes:
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > limit:
            raise body_too_large(limit)
    return bytes(received)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name appears twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _not_a_number(text: str) -> NoReturn:
    raise ValueError("a number is not finite")


def _deeper_than(limit: int, value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        level = [child for container in level for child in _containers_in(container)]
    return bool(level)


def _containers_in(container: Any) -> Iterator[Any]:
    children = container.values() if isinstance(container, dict) else container
    return (child for child in children if isinstance(child, dict | list))


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_not_a_number)
