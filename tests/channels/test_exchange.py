"""How far one request got, against receivers that fail at every stage."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from channels.destinations import Guard, Target
from channels.exchange import MAX_ANSWER_BYTES, Broken, Exchange, Reply
from domain.outcome import OutcomeKind, Scope, Stage
from tests.channels.samples import Told, told
from tests.doubles import http_receiver as http
from tests.doubles.certificates import Authority
from tests.doubles.http_receiver import Behaviour, HttpReceiver

DEADLINE_S = 0.25
LARGE = 30_000_000
"""More than the buffers of both sides hold."""


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Both event loops: how far a send got is read from their transports."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def full_backlog() -> Iterator[int]:
    """The port of a listener that lets no more connections in: the next one waits for ever."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def closed_port() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def post(
    exchange: Exchange, guard: Guard, url: str, body: bytes = b"{}", headers: dict[str, str] | None = None
) -> Reply | Broken:
    target = await guard.target(url, Scope.RECIPIENT)
    return await exchange.request("POST", target, headers or {}, body, DEADLINE_S)


async def broken(exchange: Exchange, guard: Guard, url: str, body: bytes = b"{}") -> Told:
    result = await post(exchange, guard, url, body)
    assert isinstance(result, Broken)
    return told(result.outcome())


async def replied(exchange: Exchange, guard: Guard, url: str) -> Reply:
    result = await post(exchange, guard, url)
    assert isinstance(result, Reply)
    return result


async def test_nobody_listens(exchange: Exchange, guard: Guard) -> None:
    found = await broken(exchange, guard, f"http://127.0.0.1:{closed_port()}/")
    assert found == (OutcomeKind.TRANSIENT, Stage.CONNECT, "connect_refused")


async def test_the_connection_is_never_accepted(exchange: Exchange, guard: Guard, full_backlog: int) -> None:
    found = await broken(exchange, guard, f"http://127.0.0.1:{full_backlog}/")
    assert found == (OutcomeKind.TRANSIENT, Stage.CONNECT, "connect_timeout")


async def test_the_tls_handshake_stalls(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver(http.never_read) as receiver:
        found = await broken(exchange, guard, receiver.url.replace("http:", "https:"))
    assert found == (OutcomeKind.TRANSIENT, Stage.CONNECT, "connect_timeout")


async def test_the_other_side_speaks_no_tls(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver(http.garbage) as receiver:
        receiver.then(http.close_unread)
        kind, stage, _ = await broken(exchange, guard, receiver.url.replace("http:", "https:"))
    assert (kind, stage) == (OutcomeKind.TRANSIENT, Stage.CONNECT)


async def test_an_untrusted_certificate_is_for_somebody_to_mend(guard: Guard, authority: Authority) -> None:
    exchange = Exchange(httpx.create_ssl_context(trust_env=False))
    async with HttpReceiver(tls=authority.server_context("127.0.0.1")) as receiver:
        result = await post(exchange, guard, receiver.url)
    await exchange.close()
    assert isinstance(result, Broken)
    assert told(result.outcome()) == (OutcomeKind.REJECTED, Stage.CONNECT, "tls_failed")
    assert result.outcome().scope is Scope.CONFIG
    assert receiver.requests == []


async def test_a_certificate_for_another_name_is_refused(exchange: Exchange, authority: Authority) -> None:
    async with HttpReceiver(tls=authority.server_context("other.example")) as receiver:
        target = Target(httpx.URL(f"https://receiver.example:{receiver.port}/"), ("127.0.0.1",))
        result = await exchange.request("POST", target, {}, b"{}", DEADLINE_S)
    assert result == Broken(Stage.CONNECT, "tls_failed", permanent=True)


async def test_the_pinned_address_is_used_under_the_host_s_name(exchange: Exchange, authority: Authority) -> None:
    """The name does not exist, so no resolver could have led here; the certificate and `Host` still bear it."""
    async with HttpReceiver(tls=authority.server_context("receiver.example")) as receiver:
        target = Target(httpx.URL(f"https://receiver.example:{receiver.port}/hook?a=1"), ("127.0.0.1",))
        result = await exchange.request("POST", target, {}, b"{}", DEADLINE_S)
    assert isinstance(result, Reply)
    assert receiver.requests[0].headers["host"] == f"receiver.example:{receiver.port}"
    assert receiver.requests[0].line == "POST /hook?a=1 HTTP/1.1"


async def test_the_next_address_is_tried_only_when_one_refuses(exchange: Exchange) -> None:
    async with HttpReceiver() as receiver:
        target = Target(httpx.URL(receiver.url), ("127.0.0.2", "127.0.0.1"))
        result = await exchange.request("POST", target, {}, b"{}", DEADLINE_S)
        receiver.then(http.read_then_close)
        twice = Target(httpx.URL(receiver.url), ("127.0.0.1", "127.0.0.1"))
        doubtful = await exchange.request("POST", twice, {}, b"{}", DEADLINE_S)
    assert isinstance(result, Reply)
    assert isinstance(doubtful, Broken)
    assert receiver.connections == 2


async def test_an_illegal_header_is_our_own_mistake(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver() as receiver:
        result = await post(exchange, guard, receiver.url, headers={"x": "a\r\nb: c"})
    assert isinstance(result, Broken)
    assert told(result.outcome()) == (OutcomeKind.REJECTED, Stage.HEADERS, "bad_request")


async def test_headers_that_are_never_taken_leave_no_doubt(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver(http.never_read) as receiver:
        result = await post(exchange, guard, receiver.url, headers={"x": "a" * LARGE})
    assert isinstance(result, Broken)
    assert told(result.outcome()) == (OutcomeKind.TRANSIENT, Stage.HEADERS, "no_answer")


async def test_a_body_that_is_never_taken_leaves_doubt(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver(http.never_read) as receiver:
        found = await broken(exchange, guard, receiver.url, body=bytes(LARGE))
    assert found == (OutcomeKind.UNCERTAIN, Stage.BODY, "no_answer")


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (http.read_then_hang, "no_answer"),
        (http.read_then_close, "connection_lost"),
        (http.read_then_reset, "connection_lost"),
        (http.garbage, "bad_answer"),
        (http.half_a_status_line, "connection_lost"),
    ],
)
async def test_no_status_line_after_the_body_leaves_doubt(
    exchange: Exchange, guard: Guard, behaviour: Behaviour, code: str
) -> None:
    async with HttpReceiver(behaviour) as receiver:
        found = await broken(exchange, guard, receiver.url)
    assert found == (OutcomeKind.UNCERTAIN, Stage.REPLY, code)
    assert [request.complete for request in receiver.requests] == [True]


@pytest.mark.parametrize("behaviour", [http.close_unread, http.reset_unread])
async def test_accept_then_close_looks_like_a_full_read(exchange: Exchange, guard: Guard, behaviour: Behaviour) -> None:
    """The receiver read nothing, but nothing on our side can tell; a large body shows that it had begun."""
    async with HttpReceiver(behaviour) as receiver:
        result = await post(exchange, guard, receiver.url, body=bytes(LARGE))
    assert isinstance(result, Broken)
    begun = result.stage in (Stage.BODY, Stage.REPLY)
    assert result.outcome().kind is (OutcomeKind.UNCERTAIN if begun else OutcomeKind.TRANSIENT)


@pytest.mark.parametrize("status", [200, 404, 503])
@pytest.mark.parametrize("behaviour", [http.status_then_hang, http.truncated, http.drip, http.endless])
async def test_the_status_line_stands_whatever_the_body_does(
    exchange: Exchange, guard: Guard, behaviour: Callable[[int], Behaviour], status: int
) -> None:
    async with HttpReceiver(behaviour(status)) as receiver:
        began = time.monotonic()
        reply = await replied(exchange, guard, receiver.url)
    assert (reply.status, reply.complete) == (status, False)
    assert len(reply.body) <= MAX_ANSWER_BYTES
    assert time.monotonic() - began < DEADLINE_S + 1


async def test_a_bomb_is_neither_asked_for_nor_inflated(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver(http.gzip_bomb(megabytes=20)) as receiver:
        reply = await replied(exchange, guard, receiver.url)
    assert receiver.requests[0].headers["accept-encoding"] == "identity"
    assert reply.body.startswith(b"\x1f\x8b")


async def test_a_redirect_is_an_answer_and_not_a_journey(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver() as elsewhere, HttpReceiver(http.redirect(elsewhere.url)) as receiver:
        reply = await replied(exchange, guard, receiver.url)
    assert reply.status == 307
    assert elsewhere.connections == 0


async def test_cookies_are_not_kept(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver(http.answer(headers={"Set-Cookie": "tenant=a; Path=/"})) as receiver:
        await replied(exchange, guard, receiver.url)
        await replied(exchange, guard, receiver.url)
    assert all("cookie" not in request.headers for request in receiver.requests)


async def test_a_proxy_in_the_environment_is_not_used(
    exchange: Exchange, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    async with HttpReceiver() as receiver:
        reply = await replied(exchange, guard, receiver.url)
    assert reply.status == 200


async def test_receivers_that_drop_idle_connections_cause_no_doubt(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver(http.idle_close(after_s=0.01)) as receiver:
        replies = [await replied(exchange, guard, receiver.url) for _ in range(20)]
    assert [reply.status for reply in replies] == [200] * 20
    assert receiver.connections == 20


async def test_many_at_once_do_not_wait_for_each_other(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver(http.answer(delay_s=0.2)) as receiver:
        target = await guard.target(receiver.url, Scope.RECIPIENT)
        began = time.monotonic()
        sends = (exchange.request("POST", target, {}, b"{}", 10.0) for _ in range(50))
        replies = await asyncio.gather(*sends)
    assert all(isinstance(reply, Reply) for reply in replies)
    assert time.monotonic() - began < 50 * 0.2


async def test_cancelling_closes_the_connection(exchange: Exchange, guard: Guard) -> None:
    async with HttpReceiver(http.read_then_hang) as receiver:
        target = await guard.target(receiver.url, Scope.RECIPIENT)
        sending = asyncio.create_task(exchange.request("POST", target, {}, b"{}", 30.0))
        async with asyncio.timeout(5):
            while not (receiver.requests and receiver.requests[0].complete):
                await asyncio.sleep(0.005)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
