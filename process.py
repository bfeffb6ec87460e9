"""How every process of Tidings begins and ends: exit codes, one clear line for expected failures, signals."""

import asyncio
import gc
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import uvloop

from domain.errors import TidingsError
from settings import SettingsError

_LINGER_S = 0.05
_GC_THRESHOLDS = (20_000, 20, 20)
_INTERRUPTED = 130


class Refused(Exception):
    """The process cannot do what it was asked; the message is the one line its user sees."""


def run_main(main: Callable[[], Coroutine[Any, Any, int]]) -> NoReturn:
    """Runs `main` and ends the process with its exit code."""
    try:
        sys.exit(_outcome(main))
    finally:
        _linger()


def stop_signal() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set, in place of their usual effect, while the running loop lives."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def _outcome(main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    # What was imported lives as long as the process: walking it again and again costs a tenth of a busy worker's time.
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main())
    except (Refused, SettingsError, TidingsError) as error:
        print(f"tidings: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED


def _linger() -> None:
    """Waits until Temporal's native threads have let go of the interpreter.

    A process that ends within about 20 ms of its last Temporal call aborts in up to a third of runs (exit 134 or 139).
    The exit code is decided by now, so an impatient signal must not change it.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(_LINGER_S)
