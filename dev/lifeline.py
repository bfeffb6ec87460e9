"""Ties a child process to its parent: it dies with us even when we are killed outright."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def tied_to(parent: int) -> Callable[[], None] | None:
    """What a child of process `parent` runs before its program; None where the system offers no such tie.

    The kernel watches the thread that starts the child: start it from one that lives as long as the process.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.PyDLL(None).prctl  # looked up, and kept from touching locks, before the fork

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the tie held
            os._exit(1)

    return tie
