"""The application: settings and stores become an ASGI app with every route on it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI

from api import approvals, errors, health, metrics, outbox, tasks
from api.auth import Verifier
from api.errors import ErrorAnswer
from api.metrics import Metrics
from api.observed import Observed
from api.reach import Reach
from settings import Settings
from store.database import Stores

VERSION = "0.1.0"

ROUTERS = (tasks.router, approvals.router, outbox.router, health.router, metrics.router)

PUBLIC_ROUTES = frozenset(
    {"/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs", "/docs/oauth2-redirect"}
)
"""Routes that ask for no token; every other one must name its permission."""

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (400, 401, 403, 404, 409, 413, 415, 422, 503)
}


def create_app(settings: Settings, stores: Stores, *, nudge: Callable[[], None] = lambda: None) -> FastAPI:
    """Builds the application. Raises SettingsError when authentication is not configured."""
    app = FastAPI(
        title="Tidings",
        version=VERSION,
        description="Durable notification delivery: what may have gone out waits for an operator.",
        redoc_url=None,
        strict_content_type=False,
        redirect_slashes=False,  # a redirect would repeat the Host header, which is the caller's word
        responses=_ERRORS,
        lifespan=_lifespan,
    )
    app.state.verifier = Verifier(settings.auth)
    app.state.reach = Reach(settings, stores, nudge)
    app.state.metrics = Metrics(stores)
    app.state.max_body_bytes = settings.api.max_body_bytes
    for router in ROUTERS:
        app.include_router(router)
    errors.install(app)
    app.add_middleware(Observed, metrics=app.state.metrics)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    reach: Reach = app.state.reach
    anyio.to_thread.current_default_thread_limiter().total_tokens = reach.settings.api.threads
    yield
