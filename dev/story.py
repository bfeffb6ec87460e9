"""What `tidings dev` prints: the addresses to open and, with a sample, what happened to one event."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from api.auth import mint
from dev.receiver import SampleReceiver
from dev.stack import Addresses
from dev.state_dir import StateDir

TENANT = "demo"
PATIENCE_S = 30.0
POLL_S = 0.05


def tell_addresses(addresses: Addresses, state: StateDir) -> None:
    """Prints where everything is, and last the line `ready`."""
    print(
        f"""Tidings, for development on this machine only

  API and its documentation   {addresses.api}/docs
  Temporal Web UI             {addresses.ui}
  Temporal frontend           {addresses.temporal}
  state and log               {state.path}

  a token:                    {_command()} token --state-dir {_shown(state.path)} --tenant {TENANT} --subject me \\
                                --permission tasks:write --permission runs:read --permission runs:write
  what is on its way:         {_command()} outbox list --state-dir {_shown(state.path)} --tenant {TENANT}

ready""",
        flush=True,
    )


async def tell_sample(addresses: Addresses, state: StateDir) -> None:
    """Reports one finished task with a webhook callback and prints what came of it."""
    async with SampleReceiver(state.webhook_secret_file) as receiver, _client(addresses, state) as client:
        await _tell(client, receiver, addresses)
        await asyncio.Event().wait()  # the receiver stays for as long as the stack does


async def _tell(client: httpx.AsyncClient, receiver: SampleReceiver, addresses: Addresses) -> None:
    task_id = f"sample-{int(time.time())}"
    report = {
        "runId": "run-1",
        "status": "succeeded",
        "result": {"greeting": "hello"},
        "callback": {"url": receiver.url},
    }
    answer = await client.put(f"/api/tasks/{task_id}", json=report)
    answer.raise_for_status()
    event_id = answer.json()["events"][0]["eventId"]
    print(f"\nA sample event\n\n  PUT /api/tasks/{task_id} answered {answer.status_code}: {event_id}")
    event = await _ended(client, event_id)
    for line in _story(event, receiver):
        print(f"  {line}")
    print(f"  its workflow: {event['workflow_url']}\n", flush=True)


async def _ended(client: httpx.AsyncClient, event_id: str) -> dict[str, Any]:
    give_up = time.monotonic() + PATIENCE_S
    while True:
        event: dict[str, Any] = (await client.get(f"/admin/api/notification-outbox/{event_id}")).json()
        if event["status"] not in ("pending", "processing") or time.monotonic() > give_up:
            return event
        await asyncio.sleep(POLL_S)


def _story(event: dict[str, Any], receiver: SampleReceiver) -> Iterator[str]:
    for entry in event["timeline"]:
        words = [entry["type"].replace("_", " "), entry["channel"], entry.get("outcome"), entry.get("code")]
        yield f"{entry['at']}  {' '.join(word for word in words if word)}"
    for call in receiver.calls:
        yield f"the receiver got {call.method} with X-Bailing-Event-Id {call.event_id}"
        yield f"  signature {'verified' if call.verified else 'NOT VERIFIED'} by the public standardwebhooks library"
        yield f"  body {json.dumps(call.body, ensure_ascii=False)}"
    yield f"the event is {event['status']}"


def _client(addresses: Addresses, state: StateDir) -> httpx.AsyncClient:
    token = mint(
        state.jwt_secret(),
        tenant=TENANT,
        subject="sample",
        permissions=["tasks:write", "runs:read"],
        lifetime=timedelta(hours=1),
    )
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(base_url=addresses.api, headers=headers, trust_env=False)


def _command() -> str:
    """The command as this process was called, so that what is printed can be copied."""
    called = Path(sys.argv[0])
    return str(_shown(called.absolute())) if called.name == "tidings" and called.exists() else "tidings"


def _shown(path: Path) -> Path:
    """Relative where that is shorter: it is there to be copied."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
