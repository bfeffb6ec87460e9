"""What an endpoint reaches: the stores and the nudge that the composition root gave to the application."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from settings import Settings
from store.database import Stores


@dataclass(frozen=True, slots=True)
class Reach:
    """The application's parts."""

    settings: Settings
    stores: Stores
    nudge: Callable[[], None]
    """Called after a commit that left an intent, so that a relay in this process need not wait for its next look."""


def _reach(request: Request) -> Reach:
    found: Reach = request.app.state.reach
    return found


Reached = Annotated[Reach, Depends(_reach)]
