"""Temporal's development server as a child process: started, watched, started again when it dies, stopped."""

import asyncio
import contextlib
import itertools
import logging
import os
import sysconfig
import time
from asyncio.subprocess import Process
from pathlib import Path
from types import TracebackType
from typing import Self

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from dev.lifeline import tied_to
from dev.ports import LOOPBACK
from process import Refused

NAMESPACE = "default"
SEARCH_ATTRIBUTES = ("TidingsTenant", "TidingsKind", "TidingsState")

_START_DEADLINE_S = 30.0
_STOP_DEADLINE_S = 10.0
_PROBE_DEADLINE_S = 2.0
_POLL_S = 0.05
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0
_HEALTHY_AFTER_S = 60.0

log = logging.getLogger("tidings.dev")


class TemporalServer:
    """One server on a file database. While entered, it answers or is on its way back.

    A database file that is missing is a fresh start: the recovery sweep brings back what our own store still owes.
    """

    def __init__(self, database: Path, log_file: Path, *, port: int, ui_port: int) -> None:
        self.address = f"{LOOPBACK}:{port}"
        self.ui_url = f"http://{LOOPBACK}:{ui_port}"
        self._command = _command(database, port, ui_port)
        self._log_file = log_file
        self._process: Process
        self._watch: asyncio.Task[None]

    @property
    def pid(self) -> int:
        """The process that serves now; another one after a restart."""
        return self._process.pid

    async def __aenter__(self) -> Self:
        """Returns when the server answers. Raises Refused when it cannot start."""
        self._log_file.write_bytes(b"")
        self._process = await self._spawn()
        try:
            await self._answers()
        except BaseException:
            await self._end()
            raise
        self._watch = asyncio.create_task(self._keep_alive())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watch
        await self._end()

    async def _spawn(self) -> Process:
        with self._log_file.open("ab") as errors:
            try:
                return await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=errors,
                    env={name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")},
                    start_new_session=True,  # Ctrl-C at the terminal is for us; the server is stopped last
                    preexec_fn=tied_to(os.getpid()),
                )
            except FileNotFoundError:
                raise Refused("the Temporal server is not installed; install the extra `dev-server`") from None

    async def _answers(self) -> None:
        deadline = time.monotonic() + _START_DEADLINE_S
        while not await _serving(self.address):
            if self._process.returncode is not None:
                raise Refused(f"the Temporal server could not start: {self._last_words()}")
            if time.monotonic() > deadline:
                raise Refused(f"the Temporal server did not answer within {_START_DEADLINE_S:.0f} s")
            await asyncio.sleep(_POLL_S)

    async def _keep_alive(self) -> None:
        pause = _FIRST_PAUSE_S
        for restarts in itertools.count(1):
            started = time.monotonic()
            code = await self._process.wait()
            if time.monotonic() - started > _HEALTHY_AFTER_S:
                pause = _FIRST_PAUSE_S
            log.error("the Temporal server ended and is started again", extra={"code": code, "restarts": restarts})
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            self._process = await self._spawn()

    async def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_DEADLINE_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    def _last_words(self) -> str:
        lines = self._log_file.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), f"it ended with {self._process.returncode}")


def _command(database: Path, port: int, ui_port: int) -> list[str]:
    return [
        str(Path(sysconfig.get_path("scripts")) / "temporal"),
        *("server", "start-dev", "--log-level", "error", "--disable-config-file"),
        *("--ip", LOOPBACK, "--port", str(port), "--ui-port", str(ui_port), "--ui-disable-news-fetch"),
        *("--db-filename", str(database), "--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=1"),
        # One partition per queue: with the default four, a lightly loaded queue matches tasks to pollers seconds late.
        *("--dynamic-config-value", "matching.numTaskqueueReadPartitions=1"),
        *("--dynamic-config-value", "matching.numTaskqueueWritePartitions=1"),
        *("--dynamic-config-value", "frontend.enableServerVersionCheck=false"),  # nothing calls out of this machine
        *(word for name in SEARCH_ATTRIBUTES for word in ("--search-attribute", f"{name}=Keyword")),
    ]


async def _serving(address: str) -> bool:
    try:
        async with asyncio.timeout(_PROBE_DEADLINE_S):  # something else may listen there, and say nothing
            client = await Client.connect(address, namespace=NAMESPACE)
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=NAMESPACE))
    except (RuntimeError, RPCError, TimeoutError):  # RuntimeError: refused at the socket
        return False
    return True
