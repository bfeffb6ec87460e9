"""Whatever is sent: a 4xx in the one shape, nothing written, nothing of the input repeated."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.api.served import Served

GOOD: dict[str, Any] = {"runId": "run", "status": "succeeded", "callback": {"url": "https://receiver.example/x"}}
CANARY = "canary@receiver.example"


@pytest.fixture
def client(sqlite_api: Served) -> Iterator[httpx.Client]:
    """What is wrong with a request does not depend on the database."""
    with sqlite_api.client() as client:
        yield client


def refused(answer: httpx.Response, *statuses: int) -> dict[str, Any]:
    """Asserts the shape of a refusal; its error."""
    assert answer.status_code in statuses, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error["code"]
    assert error["message"]
    assert "details" in error
    assert CANARY not in answer.text
    return error


def nested(opening: str, closing: str, depth: int = 900) -> bytes:
    return f'{{"runId":"r","status":"succeeded","result":{opening * depth}1{closing * depth}}}'.encode()


POISON = {
    "empty": b"",
    "not JSON": b"{",
    "two values": b"{} {}",
    "lone high surrogate": b'{"runId":"\\ud800","status":"succeeded"}',
    "lone low surrogate in a name": b'{"runId":"r","status":"succeeded","result":{"\\udc00":1}}',
    "NaN": b'{"runId":"r","status":"succeeded","result":NaN}',
    "Infinity": b'{"runId":"r","status":"succeeded","result":-Infinity}',
    "1e400": b'{"runId":"r","status":"succeeded","result":1e400}',
    "deep lists": nested("[", "]"),
    "deep objects": nested('{"a":', "}"),
    "very deep lists": b"[" * 200_000,
    "long integer": b'{"runId":"r","status":"succeeded","result":' + b"9" * 5_000 + b"}",
    "duplicate names": b'{"runId":"r","runId":"s","status":"succeeded"}',
    "UTF-16": json.dumps(GOOD).encode("utf-16"),
    "not UTF-8": b'{"runId":"\xff","status":"succeeded"}',
    "byte order mark": b"\xef\xbb\xbf" + json.dumps(GOOD).encode(),
    "raw NUL": b'{"runId":"a\x00b","status":"succeeded"}',
    "two megabytes": json.dumps({**GOOD, "result": "x" * 2_000_000}).encode(),
}


@pytest.mark.parametrize("body", POISON.values(), ids=POISON.keys())
def test_poison_is_refused(sqlite_api: Served, client: httpx.Client, body: bytes) -> None:
    refused(client.put("/api/tasks/x", content=body), 400, 413, 422)
    assert sqlite_api.rows() == 0


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/api/tasks/x"),
        ("POST", "/api/approvals"),
        ("POST", "/api/approvals/x/decision"),
        ("POST", "/admin/api/notification-outbox/x_callback_y/retry"),
        ("POST", "/admin/api/notification-outbox/x_callback_y/resolve"),
    ],
)
def test_no_door_takes_poison(sqlite_api: Served, client: httpx.Client, method: str, path: str) -> None:
    for body in [*POISON.values(), b"[]", b"null", b"{}", json.dumps({CANARY: 1}).encode()]:
        refused(client.request(method, path, content=body), 400, 413, 422)
    assert sqlite_api.rows() == 0


def test_a_body_without_a_length_is_counted_as_it_comes(sqlite_api: Served, client: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        yield b'{"runId":"'
        for _ in range(40):
            yield b"x" * 65_536

    refused(client.put("/api/tasks/x", content=endless()), 413)
    assert sqlite_api.rows() == 0


def change(**fields: Any) -> dict[str, Any]:
    return {**GOOD, **fields}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


WRONG: dict[str, Any] = {
    "a list": [GOOD],
    "a string": "x",
    "null": None,
    "no runId": without("runId"),
    "no status": without("status"),
    "a number for a text": change(runId=1),
    "a text for an object": change(callback=CANARY),
    "an unknown status": change(status=CANARY),
    "an unknown field": change(**{CANARY: 1}),
    "an unknown field inside": change(callback={"url": "https://x.example", CANARY: 1}),
    "snake case": change(parent_task_id="x"),
    "an empty id": change(runId=""),
    "a long id": change(runId="x" * 129),
    "a NUL": change(runId="a\x00b"),
    "a C1 control character": change(runId="a\x85b"),
    "a DEL": change(runId="a\x7fb"),
    "a line end": change(runId="a\nb"),
    "no URL": change(callback={"url": CANARY}),
    "a file URL": change(callback={"url": "file:///etc/passwd"}),
    "a URL without a host": change(callback={"url": "https:///x"}),
    "a URL with a bad port": change(callback={"url": "https://x.example:99999/"}),
    "a URL with a broken host": change(callback={"url": "https://[::1/"}),
    "an unknown channel": change(delivery=[{"channel": CANARY, "recipient": "x"}]),
    "an empty recipient": change(delivery=[{"channel": "email", "recipient": ""}]),
    "a recipient with a line end": change(delivery=[{"channel": "email", "recipient": f"{CANARY}\r\nBcc: x"}]),
    "the same target twice": change(delivery=[{"channel": "email", "recipient": CANARY}] * 2),
    "too many targets": change(delivery=[{"channel": "email", "recipient": f"{n}@x.example"} for n in range(51)]),
    "an empty brand": change(brand=""),
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_report_is_refused(sqlite_api: Served, client: httpx.Client, body: Any) -> None:
    error = refused(client.put("/api/tasks/x", content=json.dumps(body)), 422)
    assert error["code"] == "validation_failed"
    assert sqlite_api.rows() == 0


@pytest.mark.parametrize(
    "path",
    [
        "/api/tasks/",
        "/api/tasks/%00",
        "/api/tasks/%FF",
        "/api/tasks/a%01b",
        "/api/tasks/" + "x" * 129,
        "/api/tasks/" + "%F0%9F%98%80" * 129,
    ],
)
def test_a_wrong_task_id_is_refused(sqlite_api: Served, client: httpx.Client, path: str) -> None:
    refused(client.put(path, json=GOOD), 400, 422)
    assert sqlite_api.rows() == 0


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("GET", "/nothing/here", (404,)),
        ("DELETE", "/api/tasks/x", (405,)),
        ("POST", "/health/live", (405,)),
        ("GET", f"/admin/api/notification-outbox/{CANARY}", (404,)),
        ("GET", "/admin/api/notification-outbox/%FF", (400,)),
        ("GET", "/admin/api/notification-outbox?limit=abc", (422,)),
        ("GET", "/admin/api/notification-outbox?limit=0", (422,)),
        ("GET", "/admin/api/notification-outbox?statuss=failed", (422,)),
        ("GET", "/admin/api/notification-outbox?limit=201", (422,)),
        ("GET", f"/admin/api/notification-outbox?status={CANARY}", (422,)),
        ("GET", f"/admin/api/notification-outbox?kind={CANARY}", (422,)),
        ("GET", f"/admin/api/notification-outbox?cursor={CANARY}", (422,)),
        ("GET", "/admin/api/notification-outbox?cursor=MSA", (422,)),
        ("GET", "/admin/api/notification-outbox?cursor=LTEgeA==", (422,)),
        ("GET", "/admin/api/notification-outbox?cursor=%FF", (422,)),
        ("GET", "/admin/api/notification-outbox?cursor=" + "QUFB" * 1_000, (422,)),
        ("POST", "/admin/api/notification-outbox/x_callback_y/retry", (400,)),
        ("POST", "/api/approvals//decision", (400, 422)),
    ],
)
def test_a_wrong_request_is_refused(client: httpx.Client, method: str, path: str, statuses: tuple[int, ...]) -> None:
    refused(client.request(method, path), *statuses)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "x"])
def test_a_body_of_another_type_is_refused(client: httpx.Client, content_type: str) -> None:
    refused(client.put("/api/tasks/x", json=GOOD, headers={"Content-Type": content_type}), 415)
