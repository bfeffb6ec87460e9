"""The main job through the real processes: what each answer of a receiver leads to."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.doubles.http_receiver import HttpReceiver, answer, read_then_close, read_then_hang
from tests.doubles.smtp_server import Cut, SmtpScript
from tests.doubles.threads import in_thread
from tests.e2e.conftest import Providers
from tests.e2e.deployment import WEBHOOK_SECRET, Deployment, until

WECOM: dict[str, Any] = {"native": {"channel": "wecom", "recipient": "ada"}}
EMAIL: dict[str, Any] = {"delivery": [{"channel": "email", "recipient": "ada@receiver.example"}]}


def callback(receiver: HttpReceiver) -> dict[str, Any]:
    return {"callback": {"url": f"{receiver.url}/hook"}, "result": {"zebra": 1, "alpha": "é😀", "n": 1.5}}


def test_a_webhook_arrives_signed_with_the_event_id_in_header_and_body(deployment: Deployment) -> None:
    with in_thread(HttpReceiver()) as receiver:
        event = deployment.report("order-17", **callback(receiver))
        done = deployment.reaches(event, "completed")
    (request,) = receiver.requests
    body = Webhook(WEBHOOK_SECRET).verify(request.body, request.headers)
    assert event.endswith("_callback_order-17_run")
    assert (request.headers["x-bailing-event-id"], request.headers["webhook-id"]) == (event, event)
    assert json.loads(request.body) == body
    assert (body["notification_event_id"], body["kind"]) == (event, "task_callback")
    assert list(body["data"]["result"]) == ["zebra", "alpha", "n"]
    assert [entry["type"] for entry in done["timeline"]] == ["accepted", "attempt_started", "attempt_ended"]


def test_server_errors_are_retried_with_the_same_id_and_bytes(deployment: Deployment) -> None:
    with in_thread(HttpReceiver()) as receiver:
        receiver.then(answer(500), answer(500), answer(200))
        event = deployment.report(**callback(receiver))
        done = deployment.reaches(event, "completed")
    assert done["total_attempts"] == done["cycle_attempts"] == 3
    assert len({request.body for request in receiver.requests}) == 1
    assert {request.headers["webhook-id"] for request in receiver.requests} == {event}
    assert len(receiver.requests) == 3


def test_a_lost_answer_is_repeated_because_the_receiver_knows_the_id(deployment: Deployment) -> None:
    with in_thread(HttpReceiver()) as receiver:
        receiver.then(read_then_close)
        done = deployment.reaches(deployment.report(**callback(receiver)), "completed")
    assert done["total_attempts"] == 2
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1


def test_another_client_error_ends_it_at_once(deployment: Deployment) -> None:
    with in_thread(HttpReceiver(answer(404))) as receiver:
        failed = deployment.reaches(deployment.report(**callback(receiver)), "failed")
    assert (failed["total_attempts"], failed["last_error_code"]) == (1, "http_404")
    assert len(receiver.requests) == 1


def test_retry_after_is_honoured(deployment: Deployment) -> None:
    with in_thread(HttpReceiver()) as receiver:
        receiver.then(answer(429, {"Retry-After": "3"}))
        event = deployment.report(**callback(receiver))
        until(lambda: receiver.requests, "the first request")
        first = time.monotonic()
        until(lambda: len(receiver.requests) == 2, "the second request")
        assert time.monotonic() - first >= 3 - 0.1  # the first was made up to a poll earlier than seen
        assert deployment.reaches(event, "completed")["total_attempts"] == 2


def test_six_refusals_fail_and_a_retry_opens_a_new_cycle(deployment: Deployment) -> None:
    receiver = HttpReceiver()
    with in_thread(receiver):
        event_fields = callback(receiver)
    event = deployment.report(**event_fields)
    failed = deployment.reaches(event, "failed")
    assert (failed["cycle_attempts"], failed["total_attempts"]) == (6, 6)
    assert failed["last_error_code"] == "connect_refused"
    with in_thread(receiver):
        answered = deployment.retry(event, kind="task_callback", expected_status="failed")
        assert answered.status_code == 202
        assert answered.json()["cycle_attempts"] == 0
        done = deployment.reaches(event, "completed")
    assert (done["cycle_attempts"], done["total_attempts"]) == (1, 7)
    assert receiver.requests[0].headers["webhook-id"] == event


def uncertain_wecom(deployment: Deployment, providers: Providers) -> str:
    """An event whose message was read to its end and never answered."""
    providers.wecom.send_script.append(read_then_hang)
    event = deployment.report(**WECOM)
    parked = deployment.reaches(event, "uncertain")
    assert len(providers.wecom.messages) == 1
    assert parked["deliveries"][0]["channel"] == "wecom"
    return event


def test_a_native_send_without_an_answer_waits_for_an_operator(deployment: Deployment, providers: Providers) -> None:
    event = uncertain_wecom(deployment, providers)
    time.sleep(4)  # twice the sweep's patience: nothing more may come, however long one looks
    assert len(providers.wecom.messages) == 1
    refused = deployment.retry(event, kind="task_native", expected_status="uncertain")
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "allow_uncertain_required")
    changed = deployment.retry(event, kind="task_native", expected_status="failed")
    assert (changed.status_code, changed.json()["error"]["current_status"]) == (409, "uncertain")
    order = {"kind": "task_native", "expected_status": "uncertain", "allow_uncertain": True}
    with ThreadPoolExecutor(2) as operators:
        answers = sorted(r.status_code for r in operators.map(lambda _: deployment.retry(event, **order), range(2)))
    assert answers == [202, 409]
    done = deployment.reaches(event, "completed")
    assert len(providers.wecom.messages) == 2
    assert done["deliveries"][0]["provider_message_id"]
    assert [entry["operator"] for entry in done["timeline"] if entry["type"] == "decision"] == ["tester"]


@pytest.mark.parametrize(("decision", "status", "sent"), [("delivered", "completed", 1), ("abandon", "failed", 1)])
def test_a_doubt_can_be_ended_without_sending(
    deployment: Deployment, providers: Providers, decision: str, status: str, sent: int
) -> None:
    event = uncertain_wecom(deployment, providers)
    order = {"channel": "wecom", "expected_status": "uncertain", "decision": decision, "reason": "looked"}
    assert deployment.resolve(event, **order).status_code == 202
    assert deployment.resolve(event, **order).status_code == 409
    assert deployment.reaches(event, status)["status"] == status
    assert len(providers.wecom.messages) == sent


def test_a_mail_dropped_before_the_final_dot_is_retried(deployment: Deployment, providers: Providers) -> None:
    providers.smtp.script = SmtpScript(cuts={"data": Cut.CLOSE})
    event = deployment.report(**EMAIL)
    until(lambda: deployment.event(event)["total_attempts"] >= 1, "a first attempt")
    providers.smtp.script = SmtpScript()
    done = deployment.reaches(event, "completed")
    assert done["total_attempts"] >= 2
    assert len(providers.smtp.messages) == 1


def test_a_mail_dropped_after_the_final_dot_is_in_doubt(deployment: Deployment, providers: Providers) -> None:
    providers.smtp.script = SmtpScript(cuts={"dot": Cut.CLOSE})
    event = deployment.report(**EMAIL)
    deployment.reaches(event, "uncertain")
    assert len(providers.smtp.messages) == 1
    providers.smtp.script = SmtpScript()
    order = {"channel": "email", "expected_status": "uncertain", "decision": "resend", "reason": "not there"}
    assert deployment.resolve(event, **order).status_code == 202
    deployment.reaches(event, "completed")
    assert len(providers.smtp.messages) == 2


def test_one_broken_channel_stops_no_other(deployment: Deployment, providers: Providers) -> None:
    with in_thread(HttpReceiver(answer(404))) as receiver:
        targets = [
            {"channel": "webhook", "recipient": receiver.url},
            {"channel": "email", "recipient": "ada@receiver.example"},
            {"channel": "wecom", "recipient": "ada"},
        ]
        failed = deployment.reaches(deployment.report(delivery=targets), "failed")
    found = {part["channel"]: part["status"] for part in failed["deliveries"]}
    assert found == {"webhook": "failed", "email": "completed", "wecom": "completed"}


def test_an_approval_decided_before_its_prompt_left_is_skipped(deployment: Deployment, providers: Providers) -> None:
    providers.smtp.script = SmtpScript(replies={"mail": "451 4.7.1 later"})
    approval = {
        "approvalId": "a-1",
        "title": "Pay?",
        "prompt": {"channel": "email", "recipient": "ada@receiver.example"},
    }
    event = deployment.client.post("/api/approvals", json=approval).json()["events"][0]["eventId"]
    until(lambda: deployment.event(event)["total_attempts"] >= 1, "a first attempt")
    until(
        lambda: (
            deployment.client.post("/api/approvals/a-1/decision", json={"decision": "approved"}).is_success
            and deployment.event(event)["status"] in ("skipped", "failed")
        ),
        "the prompt has ended",
    )
    found = deployment.event(event)
    assert (found["status"], found["last_error_code"]) == ("skipped", "approval_decided")
    assert providers.smtp.messages == []
