"""`kill -9` and lost servers: nothing accepted is lost, and nothing native is ever sent twice by itself.

A dead worker is noticed by Temporal after its heartbeat timeout, and its delivery is retaken when the lease has ended.
"""

import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dev.temporal_server import TemporalServer
from tests.doubles.http_receiver import Behaviour, HttpReceiver, Visit, answer, read_then_hang
from tests.doubles.smtp_server import Cut, SmtpScript, SmtpServer
from tests.doubles.threads import in_thread
from tests.doubles.wecom import WeComServer
from tests.e2e.deployment import Deployment, until
from tests.temporal import private_server

WECOM: dict[str, Any] = {"native": {"channel": "wecom", "recipient": "ada"}}
EMAIL: dict[str, Any] = {"delivery": [{"channel": "email", "recipient": "ada@receiver.example"}]}


@contextmanager
def deployed(directory: Path, temporal: str, **settings: object) -> Iterator[Deployment]:
    """A deployment of this test's own, with API and worker running."""
    with Deployment(directory, temporal=temporal, send_timeout_s=10, **settings) as deployment:  # type: ignore[arg-type]
        deployment.start("api", "worker")
        yield deployment


@contextmanager
def database_locked(deployment: Deployment) -> Iterator[None]:
    """Nobody else commits while the block runs."""
    connection = sqlite3.connect(deployment.directory / "tidings.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close()


def test_killed_during_a_webhook_it_is_sent_again_with_the_same_id(tmp_path: Path, temporal: TemporalServer) -> None:
    with in_thread(HttpReceiver()) as receiver, deployed(tmp_path, temporal.address) as deployment:
        receiver.then(read_then_hang)
        event = deployment.report(callback={"url": receiver.url})
        until(lambda: receiver.requests and receiver.requests[0].complete, "the request was read")
        deployment.kill("worker")
        deployment.start("worker")
        deployment.reaches(event, "completed")
    assert len(receiver.requests) == 2
    assert {request.headers["webhook-id"] for request in receiver.requests} == {event}
    assert len({request.body for request in receiver.requests}) == 1


def test_killed_during_a_native_send_it_is_in_doubt(tmp_path: Path, temporal: TemporalServer) -> None:
    with (
        in_thread(WeComServer()) as wecom,
        deployed(tmp_path, temporal.address, wecom_url=wecom.url) as deployment,
    ):
        wecom.send_script.append(read_then_hang)
        event = deployment.report(**WECOM)
        until(lambda: wecom.messages, "the message was read")
        deployment.kill("worker")
        deployment.start("worker")
        found = deployment.reaches(event, "uncertain")
        assert found["last_error_code"] == "lease_expired"
        deployment.kill("worker")
        deployment.start("worker")
        assert deployment.event(event)["status"] == "uncertain"
    assert len(wecom.messages) == 1


def test_killed_between_sending_and_the_first_byte(tmp_path: Path, temporal: TemporalServer) -> None:
    """The attempt is committed and the relay has not even greeted: nothing proves that nothing left."""
    with (
        in_thread(SmtpServer(SmtpScript(cuts={"banner": Cut.HANG}))) as smtp,
        in_thread(HttpReceiver()) as receiver,
        deployed(tmp_path, temporal.address, smtp_port=smtp.port) as deployment,
    ):
        mail = deployment.report(**EMAIL)
        until(lambda: smtp.connections, "the relay was called")
        deployment.kill("worker")
        smtp.script = SmtpScript()
        deployment.start("worker")
        deployment.reaches(mail, "uncertain")
        assert smtp.messages == []
        assert deployment.reaches(deployment.report(callback={"url": receiver.url}), "completed")


@pytest.mark.parametrize("native", [True, False])
def test_killed_after_the_answer_and_before_the_closing_commit(
    tmp_path: Path, temporal: TemporalServer, native: bool
) -> None:
    with (
        in_thread(WeComServer()) as wecom,
        in_thread(HttpReceiver()) as receiver,
        deployed(tmp_path, temporal.address, wecom_url=wecom.url) as deployment,
    ):
        answered: list[bool] = []
        slowly = _once(answer(200, body=b'{"errcode":0,"msgid":"m"}', delay_s=1.0), answered)
        (wecom.send_script if native else receiver.script).append(slowly)
        event = deployment.report(**(WECOM if native else {"callback": {"url": receiver.url}}))
        until(lambda: wecom.messages if native else receiver.requests, "the request arrived")
        with database_locked(deployment):
            until(lambda: answered, "the answer was written")
            deployment.kill("worker")
        deployment.start("worker")
        deployment.reaches(event, "uncertain" if native else "completed")
    assert len(wecom.messages) == (1 if native else 0)
    assert [request.headers["webhook-id"] for request in receiver.requests] == ([] if native else [event, event])


def _once(behaviour: Behaviour, done: list[bool]) -> Behaviour:
    async def behave(visit: Visit) -> None:
        await behaviour(visit)
        done.append(True)

    return behave


def test_a_refused_connection_on_a_native_channel_is_a_plain_retry(tmp_path: Path, temporal: TemporalServer) -> None:
    wecom = WeComServer()
    with in_thread(wecom), deployed(tmp_path, temporal.address, wecom_url=wecom.url) as deployment:
        deployment.reaches(deployment.report(**WECOM), "completed")
        reopened = in_thread(wecom)
    with Deployment(tmp_path, temporal=temporal.address, wecom_url=wecom.url) as deployment:
        deployment.start("api", "worker")
        event = deployment.report(**WECOM)
        failed = deployment.reaches(event, "failed")
        outcomes = [entry["outcome"] for entry in failed["timeline"] if entry["type"] == "attempt_ended"]
        assert outcomes == ["transient"] * 6
        with reopened:
            assert deployment.retry(event, kind="task_native", expected_status="failed").status_code == 202
            deployment.reaches(event, "completed")


def test_the_api_killed_at_any_moment_keeps_what_it_acknowledged(tmp_path: Path, temporal: TemporalServer) -> None:
    with in_thread(HttpReceiver()) as receiver, deployed(tmp_path, temporal.address) as deployment:
        report = {"runId": "run", "status": "succeeded", "callback": {"url": receiver.url}}
        acknowledged: dict[str, str] = {}

        def put(number: int) -> None:
            try:
                answered = deployment.client.put(f"/api/tasks/task-{number}", json=report)
            except Exception:
                return  # killed under our hands: the client asks again below
            acknowledged[f"task-{number}"] = answered.json()["events"][0]["eventId"]

        with ThreadPoolExecutor(8) as clients:
            asking = [clients.submit(put, number) for number in range(200)]
            until(lambda: len(acknowledged) > 50, "some were acknowledged")
            deployment.kill("api")
            for asked in asking:
                asked.result()
        before = dict(acknowledged)
        assert len(before) < 200
        deployment.start("api")
        for number in range(200):
            put(number)
        assert before.items() <= acknowledged.items()
        until(lambda: len({r.headers.get("webhook-id") for r in receiver.requests}) == 200, "all have arrived")
    assert {request.headers["webhook-id"] for request in receiver.requests} == set(acknowledged.values())


def test_while_temporal_is_away_everything_is_accepted_and_then_delivered(tmp_path: Path) -> None:
    server = private_server(tmp_path)
    with in_thread(HttpReceiver()) as receiver:
        with in_thread(server), deployed(tmp_path, server.address) as deployment:
            deployment.reaches(deployment.report(callback={"url": receiver.url}), "completed")
            deployment.kill("worker")
        with Deployment(tmp_path, temporal=server.address) as deployment:
            deployment.start("api")
            events = [deployment.report(callback={"url": receiver.url}) for _ in range(20)]
            assert {deployment.event(event)["status"] for event in events} == {"pending"}
            with in_thread(server):
                deployment.start("worker")
                for event in events:
                    deployment.reaches(event, "completed")


def test_events_survive_the_loss_of_temporals_whole_database(tmp_path: Path) -> None:
    server = private_server(tmp_path)
    with (
        in_thread(HttpReceiver()) as receiver,
        in_thread(WeComServer()) as wecom,
        Deployment(tmp_path, temporal=server.address, wecom_url=wecom.url, send_timeout_s=1) as deployment,
    ):
        with in_thread(server):
            deployment.start("api", "worker")
            wecom.send_script.append(read_then_hang)
            doubtful = deployment.report(**WECOM)
            deployment.reaches(doubtful, "uncertain")
            receiver.then(*[answer(429, {"Retry-After": "4"})] * 10)
            waiting = [deployment.report(callback={"url": receiver.url}) for _ in range(10)]
            until(lambda: len(receiver.requests) == 10, "all were asked to come back later")
        for file in tmp_path.glob("temporal.db*"):
            file.unlink()
        with in_thread(server):
            for event in waiting:
                deployment.reaches(event, "completed", patience_s=60)
            assert deployment.event(doubtful)["status"] == "uncertain"
            order = {"channel": "wecom", "expected_status": "uncertain", "decision": "resend", "reason": "looked"}
            assert deployment.resolve(doubtful, **order).status_code == 202
            deployment.reaches(doubtful, "completed")
            assert len(wecom.messages) == 2


def test_a_worker_stopped_past_its_lease_changes_nothing_when_it_wakes(
    tmp_path: Path, temporal: TemporalServer
) -> None:
    with (
        in_thread(WeComServer()) as wecom,
        deployed(tmp_path, temporal.address, wecom_url=wecom.url) as deployment,
    ):
        answered: list[bool] = []
        slowly = answer(200, body=b'{"errcode":0,"msgid":"late"}', delay_s=1.0)
        wecom.send_script.append(_once(slowly, answered))
        event = deployment.report(**WECOM)
        until(lambda: wecom.messages, "the message arrived")
        stopped = deployment.processes["worker"]
        stopped.send_signal(signal.SIGSTOP)
        deployment.start("worker-2")
        deployment.reaches(event, "uncertain")
        until(lambda: answered, "the answer waits for the one that is stopped")
        order = {"channel": "wecom", "expected_status": "uncertain", "decision": "abandon", "reason": "not there"}
        assert deployment.resolve(event, **order).status_code == 202
        stopped.send_signal(signal.SIGCONT)

        def late() -> dict[str, Any] | None:
            entries = [e for e in deployment.event(event)["timeline"] if e["type"] == "late_result"]
            return entries[0] if entries else None

        # It wakes past its own deadline too, so whether it still reads the answer is a matter of which it sees first.
        assert until(late, "its result is kept as evidence")["outcome"] in ("delivered", "uncertain")
        assert deployment.event(event)["status"] == "failed"
    assert len(wecom.messages) == 1


def test_a_graceful_stop_lets_a_send_finish(tmp_path: Path, temporal: TemporalServer) -> None:
    with (
        in_thread(WeComServer()) as wecom,
        deployed(tmp_path, temporal.address, wecom_url=wecom.url) as deployment,
    ):
        wecom.send_script.append(answer(200, body=b'{"errcode":0,"msgid":"m"}', delay_s=2.0))
        event = deployment.report(**WECOM)
        until(lambda: wecom.messages, "the message arrived")
        assert deployment.stop("worker") == 0
        assert deployment.event(event)["status"] == "completed"
    assert len(wecom.messages) == 1


def test_a_stop_that_cannot_wait_leaves_the_truth_behind(tmp_path: Path, temporal: TemporalServer) -> None:
    with (
        in_thread(WeComServer()) as wecom,
        deployed(tmp_path, temporal.address, wecom_url=wecom.url) as deployment,
    ):
        wecom.send_script.append(read_then_hang)
        event = deployment.report(**WECOM)
        until(lambda: wecom.messages, "the message arrived")
        assert deployment.stop("worker") == 0
        assert deployment.event(event)["status"] == "uncertain"
        deployment.start("worker")
        assert deployment.resolve(
            event, channel="wecom", expected_status="uncertain", decision="delivered", reason="seen"
        ).is_success
    assert len(wecom.messages) == 1
