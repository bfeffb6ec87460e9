"""Planted personal data and keys: they reach the receivers and nothing else that leaves a trace."""

import uuid
from pathlib import Path

from dev.temporal_server import TemporalServer
from tests.doubles.http_receiver import HttpReceiver, answer, garbage, read_then_hang
from tests.doubles.smtp_server import Cut, SmtpScript, SmtpServer
from tests.doubles.threads import in_thread
from tests.doubles.wecom import WeComServer, says
from tests.e2e.deployment import SECRET, WEBHOOK_SECRET, Deployment, until
from tests.temporal import private_server

SENDS = 6


def test_nothing_planted_is_found_where_it_does_not_belong(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    planted = {
        "address": f"canary-address-{mark}@receiver.example",
        "account": f"canary-account-{mark}",
        "body": f"canary-body-{mark}",
        "path": f"canary-path-{mark}",
        "title": f"canary-title-{mark}",
        "reason": f"canary-reason-{mark}",
    }
    keys = {SECRET, WEBHOOK_SECRET.removeprefix("whsec_"), "a-corp-secret-that-nobody-may-see", "token-1"}
    server = private_server(tmp_path)
    with in_thread(server), in_thread(WeComServer()) as wecom, in_thread(SmtpServer()) as smtp:
        told = _provoke(tmp_path, server, wecom, smtp, planted)
    places = {
        "log": (tmp_path / "processes.log").read_bytes(),
        "temporal": b"".join(file.read_bytes() for file in tmp_path.glob("temporal.db*")),
        "answers": told.encode(),
    }
    assert len(places["temporal"]) > 10_000
    assert b'"attempt"' in places["log"]
    for where, written in places.items():
        for secret in [*planted.values(), *keys]:
            if (where, secret) != ("answers", planted["reason"]):  # the timeline shows an operator's own words
                assert secret.encode() not in written, (where, secret)
    assert planted["address"].encode() in b"".join(smtp.messages)
    assert planted["account"] in str(wecom.messages)
    assert planted["body"] in str(wecom.messages)


def _provoke(
    directory: Path, server: TemporalServer, wecom: WeComServer, smtp: SmtpServer, planted: dict[str, str]
) -> str:
    """Lets every kind of outcome happen with planted data; everything that the API answered on the way."""
    answers: list[str] = []
    with (
        in_thread(HttpReceiver()) as receiver,
        Deployment(
            directory, temporal=server.address, wecom_url=wecom.url, smtp_port=smtp.port, send_timeout_s=0.5
        ) as deployment,
    ):
        deployment.client.event_hooks["response"].append(lambda r: answers.append(r.read().decode()))
        deployment.start("api", "worker")
        receiver.then(answer(500), garbage, read_then_hang, answer(404), answer(200))
        wecom.send_script.extend([says(60111), says(-1), read_then_hang])
        events = []
        for number in range(SENDS):
            smtp.script = [
                SmtpScript(),
                SmtpScript(cuts={"dot": Cut.CLOSE}),
                SmtpScript(replies={"rcpt": f"550 5.1.1 <{planted['address']}> unknown"}),
            ][number % 3]
            event = deployment.report(
                result=planted["body"],
                brand=planted["title"],
                delivery=[
                    {"channel": "webhook", "recipient": f"{receiver.url}/{planted['path']}"},
                    {"channel": "email", "recipient": planted["address"]},
                    {"channel": "wecom", "recipient": planted["account"]},
                ],
            )
            events.append(event)
            deployment.reaches(event, "completed", "failed", "uncertain")
        for event in events:
            for channel in ("email", "wecom"):
                order = {"channel": channel, "expected_status": "uncertain", "decision": "abandon"}
                deployment.resolve(event, **order, reason=planted["reason"])
        deployment.client.put("/api/tasks/x", json={planted["address"]: planted["body"], "runId": [planted["body"]]})
        deployment.client.put("/api/tasks/x", content=f'{{"{planted["address"]}')
        deployment.client.get("/admin/api/notification-outbox", params={"cursor": planted["address"]})
        deployment.client.get(f"/admin/api/notification-outbox/{planted['address']}")
        deployment.client.get("/metrics")
        until(lambda: deployment.event(events[-1])["status"] != "processing", "the last one has ended")
        return "\n".join(answers)
