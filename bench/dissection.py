"""Events one after another, and many at once, through the worker and relay with every transaction counted."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from temporalio.client import Client

from bench.counts import Census, Purpose, Transactions, billable_actions
from bench.load import Wrong
from bench.product import Ports, Product, targets
from dev.temporal_server import NAMESPACE
from domain.event import Target
from domain.kinds import Source
from domain.task import RunReport, TaskStatus
from settings import load
from store import gauges, migrate, tasks
from store.database import Database, Stores
from tests.temporal import private_server
from worker import running

PATIENCE_S = 30.0
POLL_S = 0.02
WARM_UP = 3


class Cost(NamedTuple):
    """What one event cost."""

    history_events: int
    actions: int
    transactions: Transactions


@dataclass(frozen=True)
class Dissection:
    """A running product with counters in it."""

    client: Client
    stores: Stores
    census: Census
    probe: Database
    """The same database, on a connection that is not counted."""
    receivers: Ports
    nudge: Any

    async def one(self, name: str) -> Cost:
        """Sees one event through, and counts from before its acceptance until nothing of it is left to do."""
        before = self.census.now()
        workflow_id = await self._accept(name)
        await self._ended([workflow_id])
        history = await self.client.get_workflow_handle(workflow_id).fetch_history()
        return Cost(len(history.events), billable_actions(history), self.census.now().since(before))

    async def many(self, names: list[str]) -> Transactions:
        """Sees events through that are accepted all at once."""
        before = self.census.now()
        await self._ended(await asyncio.gather(*(self._accept(name) for name in names)))
        return self.census.now().since(before)

    async def _accept(self, name: str) -> str:
        delivery = tuple(Target(channel, recipient) for channel, recipient in targets(name, self.receivers).items())
        report = RunReport("bench", name, "run-1", TaskStatus.SUCCEEDED, "Bench", delivery=delivery)
        recorded = await asyncio.to_thread(self.stores.state.write, partial(tasks.record, report=report))
        self.nudge()
        return recorded.events[0].event_id

    async def _ended(self, workflow_ids: list[str]) -> None:
        give_up = time.monotonic() + PATIENCE_S
        while await asyncio.to_thread(self._waiting):
            if time.monotonic() > give_up:
                raise Wrong("intents are left over")
            await asyncio.sleep(POLL_S)
        for workflow_id in workflow_ids:
            await self.client.get_workflow_handle(workflow_id).result()

    def _waiting(self) -> int:
        return self.probe.read(partial(gauges.read, source=Source.JOBS)).waiting_intents


@asynccontextmanager
async def dissected(directory: Path, database_url: str, receivers: Ports) -> AsyncIterator[Dissection]:
    """A product in this process, warmed up, on a Temporal server of its own."""
    settings = load(Product(directory, database_url, receivers).config)
    stores = Stores.open(settings.state_url, settings.config_url, connections=settings.worker.store_threads)
    probe, census = Database(database_url, connections=1), Census()
    migrate.upgrade(stores.state)
    try:
        async with private_server(directory) as server:
            client = await Client.connect(server.address, namespace=NAMESPACE)
            with census.of(stores.state.engine):
                async with running(settings, stores, client, asyncio.Event()) as nudge:
                    dissection = Dissection(client, stores, census, probe, receivers, nudge)
                    for number in range(WARM_UP):
                        await dissection.one(f"warm-up-{number}")
                    yield dissection
    finally:
        probe.close()
        stores.close()


async def table(directory: Path, database_url: str, receivers: Ports, *, events: int, at_once: int) -> list[str]:
    """The counts as lines to print."""
    async with dissected(directory, database_url, receivers) as dissection:
        costs = [await dissection.one(f"one-{number}") for number in range(events)]
        burst = await dissection.many([f"burst-{number}" for number in range(at_once)])
    history = sorted(cost.history_events for cost in costs)
    actions = max(cost.actions for cost in costs)
    lines = [
        f"  history events {history[0]}..{history[-1]}, median {statistics.median(history):.0f}; actions {actions}"
    ]
    for kind in Purpose:
        alone = sum(cost.transactions.count[kind] for cost in costs) / events
        statements = sum(cost.transactions.statements[kind] for cost in costs) / events
        together = burst.count[kind] / at_once
        lines.append(
            f"  {kind:<8} transactions {alone:.2f} (statements {statements:.2f}); {at_once} at once: {together:.2f}"
        )
    return lines
