"""Every door an operator may use obeys the same rules: the command, the Temporal signal, and what the Web UI shows."""

import asyncio
import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from dev.temporal_server import TemporalServer
from tests.doubles.http_receiver import HttpReceiver, answer, read_then_hang
from tests.doubles.threads import in_thread
from tests.e2e.conftest import Providers
from tests.e2e.deployment import Deployment, until

TEMPORAL = Path(sysconfig.get_path("scripts")) / "temporal"


@pytest.fixture
def parked(deployment: Deployment, providers: Providers) -> str:
    """An event in doubt on WeCom."""
    providers.wecom.send_script.append(read_then_hang)
    event = deployment.report(native={"channel": "wecom", "recipient": "ada"})
    deployment.reaches(event, "uncertain")
    return event


def signal(temporal: TemporalServer, event: str, value: object) -> None:
    """Signals as an operator does from a terminal."""
    words = ["workflow", "signal", "--workflow-id", event, "--name", "resolve", "--input", json.dumps(value)]
    subprocess.run([TEMPORAL, *words, "--address", temporal.address], check=True, capture_output=True, timeout=30)


def order(**changes: object) -> dict[str, Any]:
    return {
        "channel": "wecom",
        "expected_status": "uncertain",
        "decision": "resend",
        "operator": "night shift",
        "reason": "not in the chat",
        **changes,
    }


def test_a_signal_resends_once(
    deployment: Deployment, providers: Providers, temporal: TemporalServer, parked: str
) -> None:
    signal(temporal, parked, order())
    done = deployment.reaches(parked, "completed")
    assert len(providers.wecom.messages) == 2
    (decision,) = [entry for entry in done["timeline"] if entry["type"] == "decision"]
    assert (decision["operator"], decision["door"], decision["reason"]) == ("night shift", "signal", "not in the chat")


@pytest.mark.parametrize(
    "broken",
    [
        "resend",
        7,
        None,
        [],
        {},
        order(decision="burn"),
        order(expected_status="completed"),
        order(expected_status="failed"),
        order(channel="email"),
        order(operator=""),
        order(operator={"name": "x"}),
        order(decision_id="never recorded", operator=None),
    ],
)
def test_a_signal_that_breaks_the_rules_changes_nothing(
    deployment: Deployment, providers: Providers, temporal: TemporalServer, parked: str, broken: object
) -> None:
    signal(temporal, parked, broken)
    signal(temporal, parked, order(decision="delivered"))
    assert deployment.reaches(parked, "completed")["total_attempts"] == 1
    assert len(providers.wecom.messages) == 1


def test_the_web_ui_alone_tells_what_waits_and_why(
    deployment: Deployment, temporal: TemporalServer, parked: str
) -> None:
    listed = ["workflow", "list", "--query", f'TidingsState="uncertain" AND WorkflowId="{parked}"', "--output", "json"]

    def found() -> list[dict[str, Any]]:
        done = subprocess.run(
            [TEMPORAL, *listed, "--address", temporal.address], check=True, capture_output=True, timeout=30
        )
        workflows: list[dict[str, Any]] = json.loads(done.stdout or b"[]")
        return workflows

    assert len(until(found, "the workflow is listed as uncertain")) == 1
    words = ["workflow", "metadata", "--workflow-id", parked, "--address", temporal.address]
    details = subprocess.run([TEMPORAL, *words], check=True, capture_output=True, timeout=30).stdout.decode()
    assert "wecom" in details
    assert "no_answer" in details
    assert "resolve" in details
    deployment.resolve(parked, channel="wecom", expected_status="uncertain", decision="abandon", reason="")


def test_a_failed_event_closes_its_workflow_as_failed_and_a_retry_opens_it_again(
    deployment: Deployment, temporal: TemporalServer
) -> None:
    with in_thread(HttpReceiver()) as receiver:
        receiver.then(answer(404))
        event = deployment.report(callback={"url": receiver.url})
        deployment.reaches(event, "failed")

        def status() -> str:
            async def ask() -> str:
                client = await Client.connect(temporal.address)
                described = await client.get_workflow_handle(event).describe()
                return described.status.name if described.status else ""

            return asyncio.run(ask())

        until(lambda: status() == "FAILED", "the run is closed as failed")
        assert deployment.retry(event, kind="task_callback", expected_status="failed").status_code == 202
        deployment.reaches(event, "completed")
        until(lambda: status() == "COMPLETED", "the new run is closed as completed")


def test_the_command_lists_shows_retries_and_resolves(
    deployment: Deployment, providers: Providers, parked: str
) -> None:
    access = ("--tenant", deployment.tenant)
    assert parked in deployment.command("outbox", "list", "--status", "uncertain", *access)
    listed = json.loads(deployment.command("outbox", "list", "--status", "uncertain", "--json", *access))
    assert parked in [item["event_id"] for item in listed["items"]]
    assert "uncertain" in deployment.command("outbox", "show", parked, *access)
    with pytest.raises(AssertionError, match="allow_uncertain"):
        deployment.command("outbox", "retry", parked, *access)
    resolve = ("outbox", "resolve", parked, "--channel", "wecom", "--decision", "delivered", "--reason", "seen")
    assert "completed" in deployment.command(*resolve, *access)
    with pytest.raises(AssertionError, match="status_changed"):
        deployment.command(*resolve, *access)
    assert len(providers.wecom.messages) == 1


def test_the_doctor_finds_a_sound_deployment_sound(deployment: Deployment) -> None:
    found = [json.loads(line) for line in deployment.command("doctor", "--json").splitlines()]
    assert all(line["ok"] for line in found), found
    assert {"configuration", "authentication", "database", "temporal"} <= {line["part"] for line in found}
