"""Child processes of the benchmark: they die with it, and what they print is read."""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dev.lifeline import tied_to

STOP_S = 40.0
LINE_BYTES = 1 << 20


class Failed(Exception):
    """A child ended with an error; it has told why on standard error."""


@asynccontextmanager
async def running(*words: str, **environment: str) -> AsyncIterator[Process]:
    """A Python child for as long as the block runs; stopped by SIGTERM. `environment` is added to ours."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        limit=LINE_BYTES,
        env=_environment() | environment,
        preexec_fn=tied_to(os.getpid()),
    )
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
        await asyncio.wait_for(child.wait(), STOP_S)


async def output(*words: str) -> str:
    """What a Python child that ends by itself prints. Raises Failed."""
    async with running(*words) as child:
        printed, _ = await child.communicate()
        if child.returncode:
            raise Failed(" ".join(words[:2]))
        return printed.decode()


async def line(child: Process) -> str:
    """The next line a child prints. Raises Failed when there is none."""
    assert child.stdout is not None
    if not (read := await child.stdout.readline()):
        raise Failed("a child ended early")
    return read.decode().rstrip("\n")


def _environment() -> dict[str, str]:
    """Ours without settings: the configuration of a benchmark is the file it writes."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("TIDINGS_", "TEMPORAL_"))}
