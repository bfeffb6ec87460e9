"""The sample's receiver: verifies each webhook with the public library, and keeps it to be told about."""

import asyncio
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fastapi import FastAPI, Request, Response
from standardwebhooks import Webhook, WebhookVerificationError

from api.serve import serve
from dev.ports import LOOPBACK


@dataclass(frozen=True, slots=True)
class Call:
    """One webhook as it came."""

    method: str
    event_id: str
    verified: bool
    body: Any


class SampleReceiver:
    """An HTTP server on a free port of loopback, for as long as it is entered."""

    def __init__(self, secret_file: Path) -> None:
        self.calls: list[Call] = []
        self._webhook = Webhook(secret_file.read_text(encoding="ascii").split()[0])
        self._stop = asyncio.Event()

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://{LOOPBACK}:{self._port}/webhook"

    async def __aenter__(self) -> Self:
        """Returns when it listens."""
        app = FastAPI(openapi_url=None)
        app.post("/webhook")(self._receive)
        self._port = _free_port()
        listening = asyncio.Event()
        self._serving = asyncio.create_task(serve(app, LOOPBACK, self._port, self._stop, listening=listening.set))
        await listening.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        await self._serving

    async def _receive(self, request: Request) -> Response:
        raw = await request.body()
        self.calls.append(
            Call(
                request.method,
                request.headers.get("x-bailing-event-id", ""),
                self._verified(raw, dict(request.headers)),
                json.loads(raw),
            )
        )
        return Response(status_code=204)

    def _verified(self, raw: bytes, headers: dict[str, str]) -> bool:
        try:
            self._webhook.verify(raw, headers)
        except WebhookVerificationError:
            return False
        return True


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
