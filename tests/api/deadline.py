"""Waiting for what must come about, with a deadline instead of a guess."""

import time
from collections.abc import Callable


def until(holds: Callable[[], bool], *, within_s: float = 20.0) -> None:
    """Returns once it holds; fails when it has not come about in time."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)
