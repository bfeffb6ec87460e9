"""A long run that shows whether the product's memory grows."""

from bench.figures import slope
from bench.load import Arrivals, Measured, deliver
from bench.measurements import database, names
from bench.product import Product, receivers
from bench.usage import rss_mb

AT_ONCE = 50
STEP = 1_000


async def soak(events: int) -> None:
    """Prints the resident memory of API, worker and relay every thousand events, and at the end how it grew."""
    points: list[tuple[float, float]] = []
    async with database("sqlite") as (directory, url, _), receivers() as (receiving, ports):
        arrivals = Arrivals(receiving)
        async with Product(directory, url, ports).whole() as product, arrivals.watched():
            for done in range(STEP, events + STEP, STEP):
                await deliver(product, arrivals, ports, names(STEP), AT_ONCE, Measured())
                points.append((done / STEP, rss_mb(product.pid)))
                print(f"  {done:>7} events: {points[-1][1]:.1f} MB", flush=True)
    settled = points[len(points) // 4 :]  # caches fill first
    if len(settled) > 1:
        print(f"  slope after the first quarter: {slope(settled):+.3f} MB for each 1,000 events")
