"""Records the histories that the process must be able to replay: `python -m tests.workflows.record`.

Run it when the process changes on purpose, and keep the old files for as long as workflows of that shape may be open.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from temporalio.client import Client, WorkflowExecutionStatus

from domain.decision import Verdict
from domain.lifecycle import Status
from store import migrate
from store.database import Stores
from tests.activities.scripted_channel import DELIVERED, REJECTED, TRANSIENT, UNCERTAIN, ScriptedChannel, Step
from tests.relay.post import Post
from tests.temporal import private_server

HISTORIES = Path(__file__).parent.parent / "histories"

_STACK = re.compile(r'"stackTrace": "(?:\\.|[^"\\])*"')
IDENTITY = "recorder"
"""In place of the process and host names that a client gives by itself."""

COMPLETED, FAILED = WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.FAILED

Decide = Callable[[Post, str], Awaitable[None]]


def decides(verdict: Verdict) -> Decide:
    """What an operator does about an uncertain event."""

    async def decide(post: Post, event_id: str) -> None:
        await post.reaches(event_id, Status.UNCERTAIN)
        post.decide(event_id, verdict, Status.UNCERTAIN)

    return decide


async def nobody(post: Post, event_id: str) -> None:
    """No operator is needed."""


CASES: dict[str, tuple[list[Step], Decide, WorkflowExecutionStatus]] = {
    "happy": ([DELIVERED], nobody, COMPLETED),
    "retry": ([TRANSIENT, TRANSIENT, DELIVERED], nobody, COMPLETED),
    "uncertain_resend": ([UNCERTAIN, DELIVERED], decides(Verdict.RESEND), COMPLETED),
    "uncertain_confirmed": ([UNCERTAIN], decides(Verdict.DELIVERED), COMPLETED),
    "failed": ([REJECTED], nobody, FAILED),
}
"""What the channel answers, what the operator does, and how the run ends."""


async def record(client: Client, stores: Stores, case: str) -> str:
    """Lets one event run its way; its history as JSON."""
    steps, decide, ending = CASES[case]
    async with Post(client, stores) as post, post.sending(ScriptedChannel(steps=steps)):
        post.start()
        event_id = post.record(task=case)
        await decide(post, event_id)
        await post.run_is(event_id, ending)
        history = (await client.get_workflow_handle(event_id).fetch_history()).to_json()
        return _STACK.sub('"stackTrace": ""', history)  # it names the paths of whoever recorded it


async def main() -> None:
    """Writes every history anew."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        url = f"sqlite:///{directory}/store.db"
        stores = Stores.open(url, url, connections=4)
        migrate.upgrade(stores.state)
        async with private_server(directory) as server:
            client = await Client.connect(server.address, identity=IDENTITY)
            HISTORIES.mkdir(exist_ok=True)
            for case in CASES:
                (HISTORIES / f"{case}.json").write_text(await record(client, stores, case) + "\n")
        stores.close()


if __name__ == "__main__":
    asyncio.run(main())
    time.sleep(0.05)  # Temporal's threads let go of the interpreter first
