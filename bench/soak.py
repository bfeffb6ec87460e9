"""A long run that shows whether the product's memory grows."""

from asyncio.subprocess import Process

from bench.databases import databases
from bench.figures import slope
from bench.load import Arrivals, Measured, deliver
from bench.measurements import names
from bench.product import Ports, Product, receivers
from bench.usage import rss_mb

AT_ONCE = 50
STEP = 1_000


async def soak(events: int) -> None:
    """Prints the resident memory of API, worker and relay every thousand events, and at the end how it grew."""
    with databases() as stores, stores.new("sqlite") as (directory, url, _):
        async with receivers() as (receiving, ports):
            points = await _memory(events, Product(directory, url, ports), receiving, ports)
    settled = points[len(points) // 4 :]  # caches fill first
    if len(settled) > 1:
        print(f"  slope after the first quarter: {slope(settled):+.3f} MB for each 1,000 events")


async def _memory(events: int, configured: Product, receiving: Process, ports: Ports) -> list[tuple[float, float]]:
    """Thousands of events so far, and the memory then."""
    points: list[tuple[float, float]] = []
    async with configured.whole() as product, Arrivals(receiving).watched() as arrivals:
        for done in range(STEP, events + STEP, STEP):
            await deliver(product, arrivals, ports, names(STEP), AT_ONCE, Measured())
            points.append((done / STEP, rss_mb(product.pid)))
            print(f"  {done:>7} events: {points[-1][1]:.1f} MB", flush=True)
    return points
