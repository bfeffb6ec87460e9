"""What one event of three deliveries may cost: history, billable actions and database transactions, counted exactly."""

import asyncio
import statistics
from pathlib import Path

import pytest

from bench.counts import Purpose, Transactions, purpose
from bench.dissection import Cost, dissected
from bench.load import CHANNELS
from bench.product import receivers

EVENTS = 20
AT_ONCE = 20


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Cost], Transactions]:
    """Events one after another, then many at once."""
    return asyncio.run(_measured(tmp_path_factory.mktemp("dissection")))


async def _measured(directory: Path) -> tuple[list[Cost], Transactions]:
    async with receivers() as (_, ports), dissected(directory, f"sqlite:///{directory}/state.db", ports) as product:
        costs = [await product.one(f"one-{number}") for number in range(EVENTS)]
        return costs, await product.many([f"burst-{number}" for number in range(AT_ONCE)])


def each(costs: list[Cost], kind: Purpose) -> list[int]:
    return [cost.transactions.count[kind] for cost in costs]


@pytest.mark.slow
@pytest.mark.e2e
class TestOneEvent:
    """Three deliveries on an idle machine."""

    def test_three_reports_share_a_workflow_task_when_they_can(self, measured: tuple[list[Cost], Transactions]) -> None:
        # 5 of the workflow, 3 of each activity, 3 of the task that takes their reports. The reports race for that
        # task: one that arrives when it has begun needs another, which is three events more. On an idle machine most
        # events are at 17; a busy one may delay either of two reports, but never makes more than three tasks.
        history = sorted(cost.history_events for cost in measured[0])
        assert history[0] == 17
        assert statistics.median(history) <= 20
        assert history[-1] <= 23

    def test_a_start_and_three_activities_are_billed(self, measured: tuple[list[Cost], Transactions]) -> None:
        assert max(cost.actions for cost in measured[0]) <= 1 + len(CHANNELS)

    def test_it_is_accepted_in_one_transaction(self, measured: tuple[list[Cost], Transactions]) -> None:
        assert each(measured[0], Purpose.ACCEPT) == [1] * EVENTS

    def test_a_delivery_writes_twice_and_reads_once(self, measured: tuple[list[Cost], Transactions]) -> None:
        # At most: what comes while another transaction is under way is committed together with it.
        for kind in (Purpose.CLAIM, Purpose.SETTLE, Purpose.READ):
            assert max(each(measured[0], kind)) <= len(CHANNELS)

    def test_the_relay_takes_it_and_is_done_with_it(self, measured: tuple[list[Cost], Transactions]) -> None:
        assert max(each(measured[0], Purpose.RELAY)) <= 2


@pytest.mark.slow
@pytest.mark.e2e
class TestManyAtOnce:
    """Events accepted together."""

    def test_the_relay_carries_them_in_batches(self, measured: tuple[list[Cost], Transactions]) -> None:
        _, burst = measured
        assert burst.count[Purpose.RELAY] + burst.count[Purpose.POLL] < AT_ONCE

    def test_deliveries_share_transactions(self, measured: tuple[list[Cost], Transactions]) -> None:
        _, burst = measured
        assert burst.count[Purpose.CLAIM] + burst.count[Purpose.SETTLE] < AT_ONCE * len(CHANNELS)


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (["SELECT 1", "INSERT INTO events (x)", "INSERT INTO intents (x)"], Purpose.ACCEPT),
        (["UPDATE events SET x", "UPDATE deliveries SET x", "INSERT INTO attempts (x)"], Purpose.CLAIM),
        (["SELECT x", "UPDATE deliveries SET x", "UPDATE attempts SET x"], Purpose.SETTLE),
        (["SELECT intents.x FROM intents", "UPDATE intents SET x"], Purpose.RELAY),
        (["DELETE FROM intents WHERE x"], Purpose.RELAY),
        (["SELECT intents.x \nFROM intents"], Purpose.POLL),
        (["SELECT x \nFROM events JOIN deliveries"], Purpose.READ),
    ],
)
def test_a_transaction_is_known_by_its_statements(statements: list[str], found: Purpose) -> None:
    assert purpose(statements) is found
