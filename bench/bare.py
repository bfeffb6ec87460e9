"""The ceiling: a worker and client with nothing to do but run a workflow of three empty activities, in one process."""

import asyncio
import json
import os
import sys
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkerDeploymentConfig

from bench.figures import Figures, Spread
from bench.usage import Meter
from process import run_main
from settings import WorkerSettings

TASK_QUEUE = "bare"
ACTIVITIES = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run; given as one JSON object on the command line."""

    address: str
    server_pid: int
    in_flight: int
    warm_up: int
    events: int


@activity.defn
async def nothing(argument: str) -> str:
    """Costs what any activity costs."""
    return argument


@workflow.defn
class Bare:
    """The shape of a notification without its work."""

    @workflow.run
    async def run(self, argument: str) -> str:
        """Three activities at once."""
        timeout = timedelta(seconds=60)
        calls = (
            workflow.execute_activity(nothing, argument, start_to_close_timeout=timeout) for _ in range(ACTIVITIES)
        )
        await asyncio.gather(*calls)
        return argument


async def main(plan: Plan, own_pid: int) -> int:
    """Measures and prints the figures as JSON."""
    client = await Client.connect(plan.address)
    async with Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[Bare],
        activities=[nothing],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=WorkerSettings().max_concurrent_deliveries,
        deployment_config=WorkerDeploymentConfig(
            version=WorkerDeploymentVersion("bare", "1"), use_worker_versioning=False
        ),
    ):
        await _run(client, plan.in_flight, plan.warm_up)
        meter = Meter({"bare": own_pid, "temporal": plan.server_pid})
        started = time.monotonic()
        latencies = await _run(client, plan.in_flight, plan.events)
        per_s = plan.events / (time.monotonic() - started)
        cpu_ms = meter.ms_per(plan.events)
    figures = Figures(f"bare, {plan.in_flight} in flight", per_s, {"result": Spread.of(latencies)}, cpu_ms)
    print(json.dumps(asdict(figures)))
    return 0


async def _run(client: Client, in_flight: int, events: int) -> list[float]:
    """Latencies from start to result of `events` workflows, never more than `in_flight` at once."""
    left = iter(range(events))
    latencies: list[float] = []

    async def slot() -> None:
        for _ in left:
            started = time.monotonic()
            handle = await client.start_workflow(
                Bare.run, "x", id=uuid.uuid4().hex, task_queue=TASK_QUEUE, request_eager_start=True
            )
            await handle.result()
            latencies.append(time.monotonic() - started)

    await asyncio.gather(*(slot() for _ in range(in_flight)))
    return latencies


if __name__ == "__main__":
    run_main(lambda: main(Plan(**json.loads(sys.argv[1])), os.getpid()))
