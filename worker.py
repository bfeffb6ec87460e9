"""Composition root of the worker process: settings become store, channels, activities, Temporal worker and relay."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.envconfig import ClientConfig
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkerDeploymentConfig

from activities.decide import Decide
from activities.deliver import Deliver
from activities.sender import Sender
from channels import registry
from domain.retry import RetrySchedule
from relay import Relay
from settings import Settings, SettingsError
from store.database import Stores
from store.threads import StoreThreads
from workflows.notification import Notification

LOG = logging.getLogger("tidings.worker")

BUILD_ID = "0.1.0"
CONNECT_PAUSE_S = 1.0


def temporal_config() -> dict[str, Any]:
    """Where and how Temporal is reached, from its own TEMPORAL_* variables and files. Raises SettingsError."""
    try:
        return {"target_host": "localhost:7233", **ClientConfig.load_client_connect_config()}
    except (ValueError, RuntimeError, OSError, KeyError):
        raise SettingsError("configuration: the TEMPORAL_* variables, or a file they name, cannot be read") from None


async def connect(stop: asyncio.Event) -> Client | None:
    """A connected client, however long Temporal takes to appear; None when `stop` is set first.

    Address, namespace, TLS and API key come from Temporal's own TEMPORAL_* variables.
    """
    config = temporal_config()
    while not stop.is_set():
        try:
            return await Client.connect(**config)
        except RuntimeError as error:
            LOG.warning("temporal_unreachable", extra={"error_type": type(error).__name__})
        try:
            async with asyncio.timeout(CONNECT_PAUSE_S):
                await stop.wait()
        except TimeoutError:
            continue
    return None


@asynccontextmanager
async def running(
    settings: Settings, stores: Stores, client: Client, stop: asyncio.Event
) -> AsyncIterator[Callable[[], None]]:
    """Runs worker and relay for as long as the block does; yields the relay's nudge.

    Leaving the block first ends the relay's round, then lets sends that are under way finish.
    """
    store = StoreThreads(stores, settings.worker.store_threads)
    channels = registry.build(settings)
    retry = settings.retry
    schedule = RetrySchedule(
        max_attempts=retry.max_attempts,
        first_delay_s=retry.first_delay_s,
        max_delay_s=retry.max_delay_s,
        max_retry_after_s=retry.max_retry_after_s,
    )
    sender = Sender(store, channels, schedule, lease_s=settings.worker.lease_s)
    relay = Relay(client, store, settings.relay, task_queue=settings.temporal.task_queue)
    if not settings.temporal.search_attributes:
        relay.without_search_attributes()
    longest_send = max((channel.deadline_s for channel in channels.values()), default=0.0)
    try:
        async with Worker(
            client,
            task_queue=settings.temporal.task_queue,
            workflows=[Notification],
            activities=[Deliver(sender).run, Decide(store).run],
            workflow_runner=UnsandboxedWorkflowRunner(),
            max_concurrent_activities=settings.worker.max_concurrent_deliveries,
            graceful_shutdown_timeout=timedelta(seconds=min(longest_send + 5, settings.worker.drain_s)),
            deployment_config=WorkerDeploymentConfig(
                version=WorkerDeploymentVersion("tidings", BUILD_ID), use_worker_versioning=False
            ),
        ):
            relaying = asyncio.create_task(relay.run(stop))
            relaying.add_done_callback(lambda _: stop.set())  # a worker whose relay broke must end, not look alive
            try:
                yield relay.nudge
            finally:
                stop.set()
                await relaying
    finally:
        for channel in channels.values():
            await channel.close()
        store.close()
