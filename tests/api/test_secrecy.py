"""Planted personal data: what callers write appears in no error, no log line and no metric."""

import io
import json
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from logs import JsonLines
from tests.api.raw import exchange, hang_up
from tests.api.served import Served
from tests.store.scenes import REJECTED, UNCERTAIN, send

LIST = "/admin/api/notification-outbox"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Every record of this process, of libraries too and from DEBUG on, as the processes format it."""
    written, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(written), root.level
    handler.setFormatter(JsonLines())
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.setLevel(level)
    root.removeHandler(handler)


@contextmanager
def recording(client: httpx.Client) -> Iterator[list[httpx.Response]]:
    """Every answer that the client gets meanwhile."""
    answers: list[httpx.Response] = []

    def keep(answer: httpx.Response) -> None:
        answer.read()
        answers.append(answer)

    client.event_hooks["response"] = [keep]
    yield answers
    client.event_hooks["response"] = []


def test_nothing_planted_leaves_the_database(api: Served, log: io.StringIO) -> None:
    mark = uuid.uuid4().hex
    mail, word, secret = f"canary-{mark}@receiver.example", f"canary word {mark}", f"canary-secret-{mark}"
    with api.client() as client, recording(client) as answers:
        _record(client, mail, word, secret)
        _operate(api, client, mail)
        _err(api, client, mail, word)
        _break(api, client, mail, word)
        metrics = client.get("/metrics").text
    refusals = [answer.text for answer in answers if answer.is_error]
    assert {answer.status_code for answer in answers} >= {200, 202, 400, 404, 409, 413, 415, 422, 503}
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert any(line["event"] == "store_fault" for line in lines)
    for place in (*refusals, log.getvalue(), metrics, *(answer.text for answer in answers)):
        assert mark not in place


def _record(client: httpx.Client, mail: str, word: str, secret: str) -> None:
    target = {"channel": "email", "recipient": mail}
    report = {
        "runId": "r",
        "status": "succeeded",
        "brand": word,
        "result": {mail: word},
        "delivery": [target],
        "callback": {"url": f"https://{mail.replace('@', ':pw@')}/{secret}", "secretRef": secret},
        "native": {"channel": "wecom", "recipient": mail},
    }
    for _ in range(2):
        assert client.put("/api/tasks/x", json=report).status_code == 200
    assert client.put("/api/tasks/x", json={**report, "status": "failed"}).status_code == 409
    approval = {"approvalId": "a", "title": word, "prompt": {**target, "url": f"https://receiver.example/{secret}"}}
    assert client.post("/api/approvals", json=approval).status_code == 202
    assert client.post("/api/approvals", json={**approval, "title": f"{word}!"}).status_code == 409


def _operate(api: Served, client: httpx.Client, mail: str) -> None:
    for item in client.get(LIST).json()["items"]:
        for part in item["deliveries"]:
            outcome = REJECTED if item["kind"] == "task_callback" else UNCERTAIN
            database = api.stores.of_event(item["event_id"])
            assert database is not None
            send(database, item["event_id"], outcome, channel=part["channel"])
        client.get(f"{LIST}/{item['event_id']}")
        order: dict[str, Any] = {"kind": item["kind"], "expected_status": "uncertain"}
        client.post(f"{LIST}/{item['event_id']}/retry", json=order)
        client.post(f"{LIST}/{item['event_id']}/retry", json={**order, "reason": [mail]})


def _err(api: Served, client: httpx.Client, mail: str, word: str) -> None:
    """Every kind of refusal, with the planted data wherever a caller can put it."""
    report: dict[str, Any] = {"runId": "r", "status": "succeeded"}
    for body in (
        *({mail: 1}, {**report, mail: 1}, {**report, "status": mail}, {**report, "runId": f"{mail}\n"}),
        *({**report, "callback": {"url": mail}}, {**report, "callback": {"url": "https://x.example", mail: 1}}),
        *(
            {**report, "delivery": [{"channel": mail, "recipient": mail}]},
            {**report, "brand": word * 100},
            [mail],
            mail,
        ),
    ):
        assert client.put("/api/tasks/x", json=body).status_code == 422
    for content in (f'{{"{mail}": 1, "{mail}": 2}}', f'{{"a": "{mail}', f'"{mail}\\ud800"', mail * 50_000):
        assert client.put("/api/tasks/x", content=content).status_code in (400, 413)
    assert client.put("/api/tasks/x", content=mail, headers={"Content-Type": f"text/{mail}"}).status_code == 415
    for query in (f"limit={mail}", f"cursor={mail}", f"status={mail}", f"{mail}={mail}"):
        client.get(f"{LIST}?{query}")
    client.get(f"/{mail}")
    client.get(f"{LIST}/{mail}")
    client.get(LIST, headers={"Authorization": f"Bearer {mail}"})
    client.put(f"/api/tasks/{mail}%00", json=report)
    hang_up(api, b"PUT /api/tasks/" + mail.encode() + b" HTTP/1.1", 1_000, mail.encode())
    exchange(api, b"PUT /api/tasks/\xff" + mail.encode() + b" HTTP/1.1")


def _break(api: Served, client: httpx.Client, mail: str, word: str) -> None:
    """A fault in the database, whose message quotes what was written."""
    for database in api.stores.each():
        database.write(lambda connection: connection.execute(text("DROP TABLE intents")))
    report = {"runId": "r2", "status": "succeeded", "callback": {"url": f"https://{mail}/{mail}"}, "result": word}
    assert client.put("/api/tasks/x", json=report).status_code == 503
    prompt = {"channel": "email", "recipient": mail}
    approval = {"approvalId": "b", "title": word, "prompt": prompt}
    assert client.post("/api/approvals", json=approval).status_code == 503
