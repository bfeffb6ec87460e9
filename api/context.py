"""What endpoints work with; one for each app."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from api.auth import Authenticator
from api.metrics import Metrics
from settings import Settings
from store.database import Stores


@dataclass(frozen=True, slots=True)
class Context:
    """The parts that `create_app` was given or has built."""

    settings: Settings
    stores: Stores
    authenticator: Authenticator
    metrics: Metrics
    nudge: Callable[[], None]
    """Called after a commit that left intents."""
    namespace: str
    """Temporal's namespace, for links."""


def context_of(request: Request) -> Context:
    """The context of the app that serves this request."""
    context: Context = request.app.state.context
    return context


async def _given(request: Request) -> Context:
    return context_of(request)


Given = Annotated[Context, Depends(_given)]
"""An endpoint's parameter for the context."""
