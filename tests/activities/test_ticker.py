"""A tick at a fixed pause, for as long as the block runs and no longer."""

import asyncio

from activities.ticker import ticking


class Ticks:
    """Counts, and tells when there were three."""

    def __init__(self) -> None:
        self.count = 0
        self.three = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        if self.count == 3:
            self.three.set()


async def test_it_ticks_while_the_block_runs_and_not_after() -> None:
    ticks = Ticks()
    with ticking(0.01, ticks):
        await asyncio.wait_for(ticks.three.wait(), 5)
    counted = ticks.count
    await asyncio.sleep(0.05)  # five more pauses
    assert ticks.count == counted


async def test_a_quick_block_sees_none() -> None:
    ticks = Ticks()
    with ticking(60, ticks):
        await asyncio.sleep(0)
    assert ticks.count == 0
