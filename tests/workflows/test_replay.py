"""Histories of open workflows must replay: a change of the process that they would not survive is caught here."""

import re
import socket

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from tests.workflows.record import CASES, HISTORIES, IDENTITY
from workflows import calls
from workflows.calls import EventInput
from workflows.notification import Notification


def text_of(case: str) -> str:
    return (HISTORIES / f"{case}.json").read_text()


async def replay(case: str, process: type) -> None:
    replayer = Replayer(workflows=[process], workflow_runner=UnsandboxedWorkflowRunner(), build_id="1")
    await replayer.replay_workflow(WorkflowHistory.from_json(case, text_of(case)))


@pytest.mark.parametrize("case", CASES)
async def test_the_process_replays_what_it_did(case: str) -> None:
    await replay(case, Notification)


def test_every_history_belongs_to_a_case() -> None:
    assert {file.stem for file in HISTORIES.glob("*.json")} == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_a_history_names_no_machine_and_no_recipient(case: str) -> None:
    text = text_of(case)
    assert set(re.findall(r'"identity": "([^"]*)"', text)) == {IDENTITY}
    for secret in (socket.gethostname(), "receiver.example", "http"):
        assert secret not in text.replace("http_", "")


@workflow.defn(name=calls.WORKFLOW)
class WithOneMoreActivity(Notification):
    """A change that open workflows would not survive."""

    @workflow.init
    def __init__(self, event: EventInput) -> None:
        super().__init__(event)

    @workflow.run
    async def run(self, event: EventInput) -> dict[str, str]:
        """Asks for something new first."""
        await workflow.execute_activity("audit", start_to_close_timeout=calls.DECIDE_TIMEOUT)
        return await super().run(event)


@pytest.mark.parametrize("case", CASES)
async def test_a_changed_process_is_caught(case: str) -> None:
    with pytest.raises(NondeterminismError):
        await replay(case, WithOneMoreActivity)
