"""Activities of one event that end together leave together, and wait for nobody for long."""

import asyncio

import pytest

from activities import siblings
from activities.siblings import Siblings


async def test_a_single_one_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "LINGER_S", 60)
    with Siblings().of("event") as company:
        await asyncio.wait_for(company.finish_together(), 5)


async def test_the_last_to_end_lets_all_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "LINGER_S", 60)
    events, go = Siblings(), [asyncio.Event() for _ in range(3)]
    left: list[int] = []

    async def activity(number: int) -> None:
        with events.of("event") as company:
            await go[number].wait()
            await company.finish_together()
            left.append(number)

    running = [asyncio.create_task(activity(number)) for number in range(3)]
    await asyncio.sleep(0)  # all three begin
    for number in range(2):
        go[number].set()
        await asyncio.wait(running, timeout=0.02)
    assert left == []
    go[2].set()
    await asyncio.wait_for(asyncio.gather(*running), 5)
    assert sorted(left) == [0, 1, 2]


async def test_one_that_ends_without_waiting_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "LINGER_S", 60)
    events = Siblings()
    with events.of("event") as company:
        with events.of("event"):
            waiting = asyncio.create_task(company.finish_together())
            await asyncio.wait([waiting], timeout=0.02)
            assert not waiting.done()
        await asyncio.wait_for(waiting, 5)


async def test_a_sibling_that_still_sends_is_waited_for_a_moment_only() -> None:
    events = Siblings()
    with events.of("event") as company, events.of("event"):
        await asyncio.wait_for(company.finish_together(), 5)


async def test_events_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "LINGER_S", 60)
    events = Siblings()
    with events.of("one") as company, events.of("another"):
        await asyncio.wait_for(company.finish_together(), 5)


async def test_a_cancelled_wait_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "LINGER_S", 60)
    events = Siblings()
    with events.of("event") as company, events.of("event"):
        waiting = asyncio.create_task(company.finish_together())
        await asyncio.wait([waiting], timeout=0.02)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert (company.running, company.waiting) == (2, 0)
    with events.of("event") as anew:
        assert anew.running == 1
