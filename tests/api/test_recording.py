"""Reports and approvals over the wire: recorded once, answered the same, whatever the key looks like."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.api.served import Served

REPORT: dict[str, Any] = {"runId": "run", "status": "succeeded", "callback": {"url": "https://receiver.example/x"}}


def test_a_report_answers_its_events(api: Served, client: httpx.Client) -> None:
    body = {
        **REPORT,
        "delivery": [{"channel": "Email", "recipient": "ada@receiver.example"}],
        "native": {"channel": "WeCom", "recipient": "ada"},
    }
    answer = client.put("/api/tasks/order-17", json=body)
    assert answer.status_code == 200
    found = answer.json()
    assert (found["taskId"], found["status"]) == ("order-17", "succeeded")
    assert [event["kind"] for event in found["events"]] == ["task_callback", "task_delivery", "task_native"]
    for event, tail in zip(
        found["events"], ["callback_order-17_run", "deliver_order-17", "native_order-17_run"], strict=True
    ):
        assert event["eventId"].endswith(tail)
    assert api.nudges == 1


def test_repeating_it_changes_nothing(api: Served, client: httpx.Client) -> None:
    first = client.put("/api/tasks/x", json=REPORT)
    rows = api.rows()
    assert client.put("/api/tasks/x", json=REPORT).json() == first.json()
    assert api.rows() == rows
    late = client.put("/api/tasks/x", json={**REPORT, "status": "failed"})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "conflict")
    assert api.rows() == rows


def test_fifty_at_once_are_one_event(api: Served, client: httpx.Client) -> None:
    with ThreadPoolExecutor(50) as clients:
        answers = list(clients.map(lambda _: client.put("/api/tasks/x", json=REPORT), range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert len(client.get("/admin/api/notification-outbox").json()["items"]) == 1


@pytest.mark.parametrize("where", ["taskId", "runId"])
def test_keys_that_look_alike_are_different_events(api: Served, client: httpx.Client, where: str) -> None:
    keys = ["abc", "ABC", "ábc", "abc ", "😀", "😁", "a/b", "a%2Fb", "a?b", "a#b", "a.b", "a_b"]
    found = set()
    for key in keys:
        task, run = (key, "r") if where == "taskId" else ("t", key)
        answer = client.put(f"/api/tasks/{quote(task, safe='')}", json={**REPORT, "runId": run})
        assert answer.status_code == 200, key
        assert answer.json()["taskId"] == task
        found.add(answer.json()["events"][0]["eventId"])
    assert len(found) == len(keys)


def test_an_approval_is_opened_once_and_decided_once(api: Served, client: httpx.Client) -> None:
    approval = {
        "approvalId": "a/1",
        "title": "Pay?",
        "prompt": {"channel": "email", "recipient": "ada@receiver.example", "url": "https://console.example/a"},
    }
    first = client.post("/api/approvals", json=approval)
    again = client.post("/api/approvals", json=approval)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json() == again.json()
    assert first.json()["events"][0]["eventId"].endswith("_approval_a~2F1")
    assert client.post("/api/approvals", json={**approval, "title": "Pay twice?"}).status_code == 409
    decision = "/api/approvals/a%2F1/decision"
    assert client.post(decision, json={"decision": "approved"}).json()["status"] == "approved"
    assert client.post(decision, json={"decision": "approved"}).status_code == 200
    assert client.post(decision, json={"decision": "rejected"}).status_code == 409
    assert client.post("/api/approvals/other/decision", json={"decision": "approved"}).status_code == 404
    (item,) = client.get("/admin/api/notification-outbox?source=approvals").json()["items"]
    assert (item["status"], item["last_error_code"]) == ("skipped", "approval_decided")


@pytest.mark.parametrize("content_type", [None, "application/json; charset=utf-8", "application/vnd.acme+json"])
def test_a_body_is_json_or_says_nothing_about_itself(client: httpx.Client, content_type: str | None) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    assert client.put("/api/tasks/x", content=json.dumps(REPORT), headers=headers).status_code == 200


def test_the_longest_ids_of_the_widest_characters_are_kept(api: Served, client: httpx.Client) -> None:
    keys = ["😀" * 128, "😀" * 127 + "😁", "/" * 128, "." * 128]
    found = set()
    for task in keys:
        for run in keys:
            answer = client.put(f"/api/tasks/{quote(task, safe='')}", json={**REPORT, "runId": run})
            assert answer.status_code == 200
            (event,) = answer.json()["events"]
            assert client.get(f"/admin/api/notification-outbox/{event['eventId']}").status_code == 200
            found.add(event["eventId"])
    assert len(found) == len(keys) ** 2
