"""Lists, details and decisions over the wire."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from store.database import Database
from tests.api.served import Served
from tests.store.scenes import DELIVERED, REJECTED, UNCERTAIN, send

LIST = "/admin/api/notification-outbox"
REPORT: dict[str, Any] = {"runId": "run", "status": "succeeded", "callback": {"url": "https://receiver.example/x"}}


def event(client: httpx.Client, database: Database, outcome: Any = None, task: str = "x") -> str:
    """An event whose one delivery ended so."""
    found: str = client.put(f"/api/tasks/{task}", json=REPORT).json()["events"][0]["eventId"]
    if outcome:
        send(database, found, outcome)
    return found


def test_an_item_says_what_the_contract_promises(api: Served, client: httpx.Client) -> None:
    found = event(client, api.stores.state, DELIVERED)
    (item,) = client.get(LIST).json()["items"]
    assert item.keys() >= {
        *("event_id", "source", "kind", "status", "created_at", "updated_at", "completed_at", "cycle_attempts"),
        *("total_attempts", "last_error_code", "workflow_url", "deliveries"),
    }
    assert (item["event_id"], item["source"], item["status"]) == (found, "jobs", "completed")
    (delivery,) = item["deliveries"]
    assert delivery.keys() >= {
        *("channel", "provider", "status", "cycle_attempts", "total_attempts", "next_attempt_at"),
        *("last_error_code", "provider_message_id", "payload_hash"),
    }
    assert item["created_at"].endswith("Z")
    shown = client.get(f"{LIST}/{found}").json()
    assert [entry["type"] for entry in shown["timeline"]] == ["accepted", "attempt_started", "attempt_ended"]
    assert "receiver.example" not in str(shown)


def test_pages_over_both_databases_lose_and_repeat_nothing(api: Served, client: httpx.Client) -> None:
    for number in range(7):
        event(client, api.stores.state, task=f"task-{number}")
        prompt = {"channel": "email", "recipient": "ada@receiver.example"}
        client.post("/api/approvals", json={"approvalId": f"a-{number}", "title": "?", "prompt": prompt})
    seen: list[str] = []
    cursor = None
    while True:
        page = client.get(LIST, params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
        seen += [item["event_id"] for item in page["items"]]
        if not (cursor := page["next_cursor"]):
            break
    whole = client.get(LIST, params={"limit": 200}).json()["items"]
    assert seen == [item["event_id"] for item in whole]
    assert len(set(seen)) == 14
    assert [item["created_at"] for item in whole] == sorted((item["created_at"] for item in whole), reverse=True)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=failed", 1),
        ("status=pending", 1),
        ("kind=task_callback", 2),
        ("kind=task_native", 0),
        ("source=jobs", 2),
        ("source=approvals", 0),
        ("channel=webhook&status=failed", 1),
        ("channel=email", 0),
    ],
)
def test_filters(api: Served, client: httpx.Client, query: str, found: int) -> None:
    event(client, api.stores.state, REJECTED, "one")
    event(client, api.stores.state, None, "two")
    assert len(client.get(f"{LIST}?{query}").json()["items"]) == found


def test_a_failed_event_is_retried_once(api: Served, client: httpx.Client) -> None:
    found = event(client, api.stores.state, REJECTED)
    order = {"kind": "task_callback", "expected_status": "failed", "reason": "mended"}
    assert client.post(f"{LIST}/{found}/retry", json={**order, "kind": "task_native"}).status_code == 422
    with ThreadPoolExecutor(8) as operators:
        answers = list(operators.map(lambda _: client.post(f"{LIST}/{found}/retry", json=order), range(8)))
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 7
    (won,) = [answer.json() for answer in answers if answer.status_code == 202]
    assert (won["status"], won["cycle_attempts"], won["total_attempts"]) == ("pending", 0, 1)
    lost = next(answer.json()["error"] for answer in answers if answer.status_code == 409)
    assert (lost["code"], lost["current_status"]) == ("status_changed", "pending")
    assert lost["details"] == {"current_status": "pending"}


def test_a_doubt_asks_for_an_explicit_word(api: Served, client: httpx.Client) -> None:
    found = event(client, api.stores.state, UNCERTAIN)
    order: dict[str, Any] = {"kind": "task_callback", "expected_status": "uncertain"}
    assert client.post(f"{LIST}/{found}/retry", json=order).status_code == 422
    assert client.post(f"{LIST}/{found}/retry", json={**order, "allow_uncertain": "true"}).status_code == 422
    assert client.post(f"{LIST}/{found}/retry", json={**order, "expected_status": "failed"}).status_code == 409
    resolve = {"channel": "webhook", "expected_status": "uncertain", "decision": "delivered", "reason": "seen"}
    assert client.post(f"{LIST}/{found}/resolve", json={**resolve, "channel": "email"}).status_code == 422
    assert client.post(f"{LIST}/{found}/resolve", json={**resolve, "expected_status": "failed"}).status_code == 422
    assert client.post(f"{LIST}/{found}/resolve", json=resolve).json()["status"] == "completed"
    assert client.post(f"{LIST}/{found}/resolve", json=resolve).json()["error"]["current_status"] == "completed"


def test_metrics_count_without_naming(api: Served, client: httpx.Client) -> None:
    event(client, api.stores.state, UNCERTAIN, "one")
    event(client, api.stores.state, None, "two")
    text = client.get("/metrics").text
    assert 'tidings_events{source="jobs",status="uncertain"} 1.0' in text
    assert 'tidings_events{source="jobs",status="pending"} 1.0' in text
    assert 'tidings_waiting_intents{source="jobs"} 2.0' in text
    assert 'tidings_outbox_up{source="approvals"} 1.0' in text
    assert "one" not in text.replace("(none)", "").split("# HELP tidings_requests")[1]


def test_the_openapi_document_names_every_route(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    assert set(document["paths"]) >= {
        *("/api/tasks/{taskId}", "/api/approvals", "/api/approvals/{approvalId}/decision", "/metrics"),
        *(LIST, f"{LIST}/{{event_id}}", f"{LIST}/{{event_id}}/retry", f"{LIST}/{{event_id}}/resolve"),
    }
    assert client.get("/docs").status_code == 200
