"""One HTTP request on a fresh connection to a checked address, and exactly how far it got."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

import h11
import httpcore
import httpx

from channels.destinations import Target
from channels.failures import causes, connect_failure
from domain.outcome import Outcome, OutcomeKind, Scope, Stage

MAX_ANSWER_BYTES = 65_536

_STAGE_BEGUN = {
    "http11.send_request_headers.started": Stage.HEADERS,
    "http11.send_request_body.started": Stage.BODY,
    "http11.send_request_body.complete": Stage.REPLY,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A status line was read; `complete` says whether the whole body was too."""

    status: int
    headers: httpx.Headers
    body: bytes
    complete: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """No status line was read."""

    stage: Stage
    code: str
    permanent: bool = False

    def outcome(self) -> Outcome:
        """In doubt once the body began, whatever the error was; certain not to have been sent before that."""
        if self.stage in (Stage.BODY, Stage.REPLY):
            return Outcome(OutcomeKind.UNCERTAIN, self.code, self.stage)
        if self.permanent:
            return Outcome(OutcomeKind.REJECTED, self.code, self.stage, Scope.CONFIG)
        return Outcome(OutcomeKind.TRANSIENT, self.code, self.stage)


class Exchange:
    """Carries requests; safe for any number at once.

    Every request has its own connection. A pooled one that its peer just closed would look like a send in doubt, and
    the pool knows connections by address: two hosts behind one address would share one verified for only one of them.
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        # The transport and not the client: it follows no redirect, keeps no cookie, reads no proxy from the
        # environment, inflates no body and logs no URL.
        self._transport = httpx.AsyncHTTPTransport(
            verify=tls, trust_env=False, limits=httpx.Limits(max_connections=None, max_keepalive_connections=0)
        )

    async def request(
        self, method: str, target: Target, headers: Mapping[str, str], body: bytes, deadline_s: float
    ) -> Reply | Broken:
        """Sends once and reads the answer, within `deadline_s` in all. Never raises but for cancellation."""
        progress = _Progress()
        try:
            async with asyncio.timeout(deadline_s):
                await self._reach(method, target, headers, body, progress)
        except Exception as error:  # whatever it was, the stage tells what the receiver may hold
            progress.error = error
        finally:
            await progress.release()
        return progress.result()

    async def close(self) -> None:
        """Closes every connection still open."""
        await self._transport.aclose()

    async def _reach(
        self, method: str, target: Target, headers: Mapping[str, str], body: bytes, progress: "_Progress"
    ) -> None:
        """Tries the host's addresses in turn until one accepts the connection."""
        for address in target.addresses[:-1]:
            try:
                return await self._send(_request(method, target, address, headers, body, progress), progress)
            except httpx.ConnectError:
                continue
        await self._send(_request(method, target, target.addresses[-1], headers, body, progress), progress)

    async def _send(self, request: httpx.Request, progress: "_Progress") -> None:
        async with aclosing(await self._transport.handle_async_request(request)) as response:
            progress.response = response
            async with aclosing(cast(AsyncGenerator[bytes, None], response.aiter_raw())) as chunks:
                async for chunk in chunks:
                    progress.body += chunk
                    if len(progress.body) > MAX_ANSWER_BYTES:
                        return
            progress.complete = True


def _request(
    method: str, target: Target, address: str, headers: Mapping[str, str], body: bytes, progress: "_Progress"
) -> httpx.Request:
    """The request to one address, under the name of its host."""
    return httpx.Request(
        method,
        target.url.copy_with(host=address),
        headers={
            "Host": target.url.netloc.decode("ascii"),
            **headers,
            "Accept-Encoding": "identity",
            "Connection": "close",
        },
        content=body,
        extensions={"sni_hostname": target.url.raw_host.decode("ascii").rstrip("."), "trace": progress.trace},
    )


@dataclass(slots=True)
class _Progress:
    """How far one request got; right at any moment, so also when it is cut short."""

    stage: Stage = Stage.CONNECT
    response: httpx.Response | None = None
    body: bytearray = field(default_factory=bytearray)
    complete: bool = False
    error: Exception | None = None
    connected: httpcore.AsyncNetworkStream | None = None

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Called by httpx at every step. The error's type alone cannot tell whether the body began; this can."""
        self.stage = _STAGE_BEGUN.get(event, self.stage)
        if event == "connection.connect_tcp.complete":
            self.connected = info["return_value"]

    async def release(self) -> None:
        """Closes a connection that was cut short in its TLS handshake, which httpx leaves to the garbage collector."""
        if self.stage is Stage.CONNECT and self.connected is not None:
            await self.connected.aclose()

    def result(self) -> Reply | Broken:
        """A status line decides over anything that went wrong after it."""
        if self.response is not None:
            body = bytes(self.body[:MAX_ANSWER_BYTES])
            return Reply(self.response.status_code, self.response.headers, body, self.complete)
        if self.stage is Stage.CONNECT and self.error is not None:
            failure = connect_failure(self.error)
            return Broken(self.stage, failure.code, failure.permanent)
        return Broken(self.stage, _code(self.error), isinstance(self.error, httpx.LocalProtocolError))


def _code(error: Exception | None) -> str:
    if isinstance(error, TimeoutError):
        return "no_answer"
    if isinstance(error, httpx.LocalProtocolError):
        return "bad_request"
    # httpx raises one error for bytes that its parser refused and for a connection that just closed.
    garbled = any(isinstance(cause, h11.RemoteProtocolError) for cause in causes(error))
    return "bad_answer" if garbled else "connection_lost"
