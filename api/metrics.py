"""`/metrics`: the outbox by source, read when asked, and requests by route. No label names anybody or any event."""

import time
from collections.abc import Iterator
from functools import partial

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from domain.errors import StoreUnavailable
from domain.kinds import Source
from domain.lifecycle import Status
from store import gauges
from store.database import Stores
from store.gauges import Gauges

router = APIRouter(tags=["health"])

KEPT_S = 1.0
"""How long one reading is answered again, so that scraping cannot load the database."""


class Metrics:
    """One application's metrics."""

    def __init__(self, stores: Stores) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Outbox(stores))
        self.requests = Counter(
            "tidings_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )


class _Outbox(Collector):
    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._read_at = float("-inf")
        self._kept: list[GaugeMetricFamily] = []

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing in advance: registering must not read the database."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Every gauge of every source."""
        if time.monotonic() - self._read_at > KEPT_S:
            self._kept = self._families()
            self._read_at = time.monotonic()
        yield from self._kept

    def _families(self) -> list[GaugeMetricFamily]:
        up = GaugeMetricFamily("tidings_outbox_up", "Whether the source's database answers.", labels=["source"])
        count = GaugeMetricFamily("tidings_events", "Events by status.", labels=["source", "status"])
        oldest = GaugeMetricFamily("tidings_oldest_pending_seconds", "Age of the oldest open event.", labels=["source"])
        expired = GaugeMetricFamily("tidings_expired_leases", "Leases whose sender has died.", labels=["source"])
        intents = GaugeMetricFamily("tidings_waiting_intents", "Intents not yet with Temporal.", labels=["source"])
        for source in Source:
            found = self._read(source)
            up.add_metric([source], 0.0 if found is None else 1.0)
            if found is not None:
                for status in Status:
                    count.add_metric([source, status], found.events.get(status, 0))
                oldest.add_metric([source], found.oldest_pending_s)
                expired.add_metric([source], found.expired_leases)
                intents.add_metric([source], found.waiting_intents)
        return [up, count, oldest, expired, intents]

    def _read(self, source: Source) -> Gauges | None:
        try:
            return self._stores.holding(source).read(partial(gauges.read, source=source))
        except StoreUnavailable:
            return None


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Metrics in the Prometheus text format."""
    found: Metrics = request.app.state.metrics
    return Response(generate_latest(found.registry), media_type=CONTENT_TYPE_LATEST)
