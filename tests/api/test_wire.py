"""HTTP as nobody should speak it: every answer is a plain one or a refusal, never a fault of ours."""

import json
from typing import Any

import httpx
import pytest

from tests.api.deadline import until
from tests.api.raw import exchange, hang_up
from tests.api.served import Served

LIST = b"/admin/api/notification-outbox"
REPORT = b'{"runId":"r","status":"succeeded","callback":{"url":"https://receiver.example"}}'


def get(target: bytes) -> bytes:
    return b"GET " + target + b" HTTP/1.1"


ODD: dict[str, tuple[bytes, tuple[bytes, ...], bytes, int]] = {
    "a raw byte in the path": (b"PUT /api/tasks/\xff HTTP/1.1", (), b"", 400),
    "raw UTF-8 in the path": ("PUT /api/tasks/é HTTP/1.1".encode(), (), b"", 400),
    "a raw byte in the query": (get(LIST + b"?cursor=\xff"), (), b"", 400),
    "a NUL in the query": (get(LIST + b"?cursor=%00"), (), b"", 422),
    "a surrogate in the query": (get(LIST + b"?cursor=%ED%A0%80"), (), b"", 422),
    "letters beyond ASCII in the cursor": (get(LIST + b"?cursor=%C3%A9"), (), b"", 422),
    "the last of two limits counts": (get(LIST + b"?limit=3&limit=abc"), (), b"", 422),
    "the last of two limits is good": (get(LIST + b"?limit=abc&limit=3"), (), b"", 200),
    "a limit of many digits": (get(LIST + b"?limit=" + b"9" * 50_000), (), b"", 422),
    "a long cursor": (get(LIST + b"?cursor=" + b"9" * 50_000), (), b"", 422),
    "thousands of parameters": (get(LIST + b"?" + b"a=1&" * 5_000), (), b"", 422),
    "a long path": (get(b"/" + b"a" * 50_000), (), b"", 404),
    "a NUL in an event id": (get(LIST + b"/x_callback_%00"), (), b"", 404),
    "an emoji in an event id": (get(LIST + b"/x_callback_%F0%9F%98%80"), (), b"", 404),
    "a long event id": (get(LIST + b"/x_callback_" + b"x" * 9_000), (), b"", 404),
    "a long header": (get(LIST), (b"X-Long: " + b"9" * 50_000,), b"", 200),
    "a broken escape": (b"PUT /api/tasks/%zz HTTP/1.1", (b"Content-Length: %d" % len(REPORT),), REPORT, 400),
    "half an escape": (b"PUT /api/tasks/a%2 HTTP/1.1", (b"Content-Length: %d" % len(REPORT),), REPORT, 400),
    "a body on GET": (get(LIST), (b"Content-Length: 10",), b"0123456789", 200),
    "HEAD": (b"HEAD /health/live HTTP/1.1", (), b"", 405),
    "OPTIONS": (b"OPTIONS /api/tasks/x HTTP/1.1", (), b"", 405),
    "OPTIONS for the server": (b"OPTIONS * HTTP/1.1", (), b"", 404),
    "a method of another protocol": (b"PROPFIND /api/tasks/x HTTP/1.1", (), b"", 405),
    "another target in the line": (b"GET http://elsewhere.example" + LIST + b" HTTP/1.1", (), b"", 200),
    "a slash too many": (get(LIST + b"/"), (), b"", 404),
    "a chunk without a length": (b"PUT /api/tasks/x HTTP/1.1", (b"Transfer-Encoding: chunked",), b"ZZ\r\n", 400),
    "two lengths": (b"PUT /api/tasks/x HTTP/1.1", (b"Content-Length: 2", b"Content-Length: 3"), b"{}x", 400),
    "a negative length": (b"PUT /api/tasks/x HTTP/1.1", (b"Content-Length: -1",), b"", 400),
    "a zipped body": (
        *(b"PUT /api/tasks/x HTTP/1.1", (b"Content-Encoding: gzip", b"Content-Length: 4")),
        *(b"\x1f\x8b\x08\x00", 400),
    ),
}


@pytest.mark.parametrize(("line", "headers", "body", "status"), ODD.values(), ids=ODD.keys())
def test_an_odd_request(sqlite_api: Served, line: bytes, headers: tuple[bytes, ...], body: bytes, status: int) -> None:
    answer = exchange(sqlite_api, line, headers, body)
    assert answer.status == status, answer
    if status >= 400 and "application/json" in answer.head and answer.body:
        assert answer.error["code"]
    assert sqlite_api.rows() == 0


def test_a_caller_who_hangs_up_is_no_fault_of_ours(sqlite_api: Served, caplog: pytest.LogCaptureFixture) -> None:
    hang_up(sqlite_api, b"PUT /api/tasks/x HTTP/1.1", 100, b"{")
    with sqlite_api.client() as client:
        until(lambda: 'route="/api/tasks/{taskId:path}",status="4xx"' in client.get("/metrics").text)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    assert sqlite_api.rows() == 0


def test_a_fault_of_ours_is_counted_and_says_nothing(sqlite_api: Served, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise ZeroDivisionError("canary")

    sqlite_api.app.add_api_route("/broken", broken, include_in_schema=False)
    answer = httpx.get(f"{sqlite_api.url}/broken", trust_env=False)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "canary" not in answer.text
    assert 'route="/broken",status="5xx"} 1.0' in httpx.get(f"{sqlite_api.url}/metrics", trust_env=False).text
    assert any(record.name == "tidings.api" and record.levelname == "ERROR" for record in caplog.records)


def references(value: Any) -> set[str]:
    """Every `$ref` below a value."""
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(part) for part in value.values()))
    return set().union(*(references(part) for part in value)) if isinstance(value, list) else set()


def test_the_openapi_document_is_whole(sqlite_api: Served) -> None:
    document = httpx.get(f"{sqlite_api.url}/openapi.json", trust_env=False).json()
    for reference in references(document):
        place = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
    operations = [(path, op) for path, methods in document["paths"].items() for op in methods.values()]
    names = [op["operationId"] for _, op in operations]
    assert len(names) == len(set(names))
    for path, op in operations:
        declared = {p["name"] for p in op.get("parameters", []) if p["in"] == "path"}
        assert declared == {part[1:-1] for part in path.split("/") if part.startswith("{")}, path
        public = path in ("/health/live", "/health/ready", "/metrics")
        assert bool(op.get("security")) != public, path
    assert json.dumps(document)
