"""The measurements: each starts what it needs, measures once and stops it again."""

import asyncio
import json
import os
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import child, commits
from bench.bare import Plan
from bench.databases import Databases
from bench.figures import Figures, Spread
from bench.load import CHANNELS, Arrivals, Connection, Measured, deliver
from bench.product import Ports, Product, Running, receivers, run_body
from bench.usage import Meter
from tests.temporal import private_server

ACCEPT_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Load:
    """So many events, so many at once; before them others that are not measured."""

    at_once: int
    events: int
    warm_up: int


async def bare(loads: Sequence[Load]) -> list[Figures]:
    """The ceiling under each load, on a server of its own."""
    with TemporaryDirectory(prefix="bench-") as name:
        async with private_server(Path(name)) as server:
            return [await _bare(server.address, server.pid, load) for load in loads]


async def _bare(address: str, server_pid: int, load: Load) -> Figures:
    plan = Plan(address, server_pid, load.at_once, load.warm_up, load.events)
    return _figures(await child.output("-m", "bench.bare", json.dumps(asdict(plan))))


async def ours(stores: Databases, kind: str, loads: Sequence[Load]) -> list[Figures]:
    """The whole product on a database of this kind under each load, from the accept request to the receivers."""
    with stores.new(kind) as (directory, url, server):
        async with receivers() as (receiving, ports), Product(directory, url, ports).whole() as product:
            others = {**server, "load": os.getpid(), "receivers": receiving.pid}
            pids = {"ours": product.pid, "temporal": product.temporal_pid, **others}
            async with Arrivals(receiving).watched() as arrivals:
                return [await _ours(kind, load, partial(deliver, product, arrivals, ports), pids) for load in loads]


async def _ours(
    kind: str, load: Load, run: Callable[[Iterator[str], int, Measured], Awaitable[None]], pids: dict[str, int]
) -> Figures:
    await run(names(load.warm_up), load.at_once, Measured())
    meter, measured, started = Meter(pids), Measured(), time.monotonic()
    await run(names(load.events), load.at_once, measured)
    per_s = load.events / (time.monotonic() - started)
    return Figures(f"{kind}, {load.at_once} in flight", per_s, _latencies(measured), meter.ms_per(load.events))


async def accepting(stores: Databases, kind: str, events: int) -> tuple[list[Figures], Figures]:
    """What the database commits on one connection and on many, and how fast the API accepts on it."""
    ports = Ports(http=9, smtp=9)  # nothing takes the events up, so nobody is sent to
    with stores.new(kind) as (directory, url, server):
        ceilings = [await _raw_commits(url, connections, events, server) for connections in (1, ACCEPT_AT_ONCE)]
        async with Product(directory, url, ports).api() as product:
            await _accept(product, ports, ACCEPT_AT_ONCE * 4)
            meter = Meter({"api": product.pid, **server, "load": os.getpid()})
            started = time.monotonic()
            latencies = await _accept(product, ports, events)
            per_s = events / (time.monotonic() - started)
            cpu_ms = meter.ms_per(events)
    accepts = Figures(f"{kind}, accepts, {ACCEPT_AT_ONCE} at once", per_s, {"accept": Spread.of(latencies)}, cpu_ms)
    return ceilings, accepts


async def _raw_commits(url: str, connections: int, count: int, server: dict[str, int]) -> Figures:
    plan = commits.Plan(url, connections, count, server.get("mariadb", 0))
    return _figures(await child.output("-m", "bench.commits", json.dumps(asdict(plan))))


async def _accept(product: Running, ports: Ports, events: int) -> list[float]:
    left, latencies = names(events), list[float]()

    async def slot() -> None:
        with closing(Connection(product)) as connection:
            latencies.extend([await _timed(connection, name, ports) for name in left])

    await asyncio.gather(*(slot() for _ in range(ACCEPT_AT_ONCE)))
    return latencies


async def _timed(connection: Connection, name: str, ports: Ports) -> float:
    started = time.monotonic()
    await connection.report(name, run_body(name, ports))
    return time.monotonic() - started


def names(count: int) -> Iterator[str]:
    """New names for tasks and their recipients."""
    run = uuid.uuid4().hex[:8]
    return (f"{run}-{number}" for number in range(count))


def _latencies(measured: Measured) -> dict[str, Spread]:
    return {
        "accept": Spread.of(measured.accept),
        **{channel: Spread.of(measured.channels[channel]) for channel in CHANNELS},
        "last": Spread.of(measured.last),
    }


def _figures(printed: str) -> Figures:
    values: dict[str, Any] = json.loads(printed)
    latencies = {name: Spread(**spread) for name, spread in values.pop("latency_ms").items()}
    return Figures(**values, latency_ms=latencies)
