"""E-mail against servers that fail at every step of the conversation."""

import asyncio
import hashlib
import ssl
from typing import Any

import pytest
from aiosmtpd.handlers import Message as MessageHandler
from aiosmtpd.smtp import SMTP as RealSmtp
from pydantic import SecretStr

from channels.destinations import Guard
from channels.email import EmailChannel
from channels.tls import trust
from domain.outcome import OutcomeKind, Scope, Stage
from settings import SettingsError, SmtpSettings
from tests.channels.samples import Told, deliver, message, told
from tests.doubles.certificates import Authority
from tests.doubles.smtp_server import Cut, SmtpScript, SmtpServer

LARGE = "All work and no play. " * 600_000
"""More than the buffers of both sides hold."""

DELIVERED, REJECTED = OutcomeKind.DELIVERED, OutcomeKind.REJECTED
TRANSIENT, UNCERTAIN = OutcomeKind.TRANSIENT, OutcomeKind.UNCERTAIN


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Both event loops: how far a send got is read from their transports."""
    return "asyncio", {"use_uvloop": request.param}


def channel_to(port: int, guard: Guard, trusted: ssl.SSLContext, **changes: Any) -> EmailChannel:
    values: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": port,
        "tls": "none",
        "sender": "tidings@sender.example",
        "timeout_s": 0.25,
        "final_reply_timeout_s": 0.25,
    }
    return EmailChannel(SmtpSettings(**{**values, **changes}), guard, trusted)


async def test_a_relay_takes_the_message(guard: Guard, tls: ssl.SSLContext) -> None:
    async with SmtpServer() as server:
        channel = channel_to(server.port, guard, tls)
        prepared = await channel.prepare(message(text="one\n.two\n"))
        outcome = await prepared.send()
    assert told(outcome) == (DELIVERED, Stage.ANSWERED, "smtp_250_2.0.0")
    assert outcome.provider_message_id == "4F2A9C"
    assert [hashlib.sha256(taken).hexdigest() for taken in server.messages] == [prepared.payload_hash]
    assert server.commands[1:] == [
        "MAIL FROM:<tidings@sender.example>",
        "RCPT TO:<somebody@example.com>",
        "DATA",
        "QUIT",
    ]


async def test_every_attempt_is_a_connection_of_its_own_with_the_same_bytes(guard: Guard, tls: ssl.SSLContext) -> None:
    async with SmtpServer() as server:
        for _ in range(2):
            await deliver(channel_to(server.port, guard, tls), message())
    assert server.connections == 2
    assert server.messages[0] == server.messages[1]


STEP_REPLIES: list[tuple[str, str, Told, Scope]] = [
    ("banner", "421 4.3.2 busy", (TRANSIENT, Stage.CONNECT, "smtp_421_4.3.2"), Scope.CONFIG),
    ("banner", "554 no service", (REJECTED, Stage.CONNECT, "smtp_554"), Scope.CONFIG),
    ("ehlo", "421 busy", (TRANSIENT, Stage.HEADERS, "smtp_421"), Scope.CONFIG),
    ("ehlo", "550 who are you", (REJECTED, Stage.HEADERS, "smtp_550"), Scope.CONFIG),
    ("mail", "451 4.7.1 later", (TRANSIENT, Stage.HEADERS, "smtp_451_4.7.1"), Scope.SENDER),
    ("mail", "550 5.7.1 not you", (REJECTED, Stage.HEADERS, "smtp_550_5.7.1"), Scope.SENDER),
    ("rcpt", "450 4.7.1 greylisted", (TRANSIENT, Stage.HEADERS, "smtp_450_4.7.1"), Scope.RECIPIENT),
    ("rcpt", "452 4.2.2 full", (TRANSIENT, Stage.HEADERS, "smtp_452_4.2.2"), Scope.RECIPIENT),
    ("rcpt", "421 closing", (TRANSIENT, Stage.HEADERS, "smtp_421"), Scope.RECIPIENT),
    ("rcpt", "550 5.1.1 unknown", (REJECTED, Stage.HEADERS, "smtp_550_5.1.1"), Scope.RECIPIENT),
    ("rcpt", "551 moved", (REJECTED, Stage.HEADERS, "smtp_551"), Scope.RECIPIENT),
    ("rcpt", "552 storage", (REJECTED, Stage.HEADERS, "smtp_552"), Scope.RECIPIENT),
    ("rcpt", "553 5.1.3 syntax", (REJECTED, Stage.HEADERS, "smtp_553_5.1.3"), Scope.RECIPIENT),
    ("data", "451 later", (TRANSIENT, Stage.HEADERS, "smtp_451"), Scope.MESSAGE),
    ("data", "454 Throttling failure", (TRANSIENT, Stage.HEADERS, "smtp_454"), Scope.MESSAGE),
    ("data", "503 no recipients", (REJECTED, Stage.HEADERS, "smtp_503"), Scope.MESSAGE),
    ("data", "554 no", (REJECTED, Stage.HEADERS, "smtp_554"), Scope.MESSAGE),
    ("data", "250 odd", (TRANSIENT, Stage.HEADERS, "smtp_250"), Scope.MESSAGE),
    ("dot", "250 ok", (DELIVERED, Stage.ANSWERED, "smtp_250"), Scope.MESSAGE),
    ("dot", "421 closing", (TRANSIENT, Stage.ANSWERED, "smtp_421"), Scope.MESSAGE),
    ("dot", "451 4.3.0 later", (TRANSIENT, Stage.ANSWERED, "smtp_451_4.3.0"), Scope.MESSAGE),
    ("dot", "550 5.1.1 unknown", (REJECTED, Stage.ANSWERED, "smtp_550_5.1.1"), Scope.RECIPIENT),
    ("dot", "552 5.3.4 too big", (REJECTED, Stage.ANSWERED, "smtp_552_5.3.4"), Scope.MESSAGE),
    ("dot", "554 5.7.1 spam", (REJECTED, Stage.ANSWERED, "smtp_554_5.7.1"), Scope.MESSAGE),
    ("dot", "354 odd", (UNCERTAIN, Stage.ANSWERED, "smtp_354"), Scope.MESSAGE),
    ("dot", "what?", (UNCERTAIN, Stage.REPLY, "bad_answer"), Scope.MESSAGE),
    ("rcpt", "what?", (TRANSIENT, Stage.HEADERS, "bad_answer"), Scope.MESSAGE),
]


@pytest.mark.parametrize(("step", "reply", "expected", "scope"), STEP_REPLIES)
async def test_a_reply_means_what_its_step_says(
    guard: Guard, tls: ssl.SSLContext, step: str, reply: str, expected: Told, scope: Scope
) -> None:
    async with SmtpServer(SmtpScript(replies={step: reply})) as server:
        outcome = await deliver(channel_to(server.port, guard, tls), message())
    assert told(outcome) == expected
    assert outcome.scope is scope


CUTS: list[tuple[str, Cut, Told]] = [
    ("banner", Cut.CLOSE, (TRANSIENT, Stage.CONNECT, "connect_failed")),
    ("banner", Cut.HANG, (TRANSIENT, Stage.CONNECT, "connect_timeout")),
    ("ehlo", Cut.CLOSE, (TRANSIENT, Stage.HEADERS, "connection_lost")),
    ("ehlo", Cut.HANG, (TRANSIENT, Stage.HEADERS, "no_answer")),
    ("mail", Cut.CLOSE, (TRANSIENT, Stage.HEADERS, "connection_lost")),
    ("mail", Cut.RESET, (TRANSIENT, Stage.HEADERS, "connection_lost")),
    ("rcpt", Cut.CLOSE, (TRANSIENT, Stage.HEADERS, "connection_lost")),
    ("rcpt", Cut.HANG, (TRANSIENT, Stage.HEADERS, "no_answer")),
    ("data", Cut.RESET, (TRANSIENT, Stage.HEADERS, "connection_lost")),
    ("data", Cut.HANG, (TRANSIENT, Stage.HEADERS, "no_answer")),
    ("dot", Cut.CLOSE, (UNCERTAIN, Stage.REPLY, "connection_lost")),
    ("dot", Cut.RESET, (UNCERTAIN, Stage.REPLY, "connection_lost")),
    ("dot", Cut.HANG, (UNCERTAIN, Stage.REPLY, "no_answer")),
]


@pytest.mark.parametrize(("step", "cut", "expected"), CUTS)
async def test_only_silence_after_the_final_dot_leaves_doubt(
    guard: Guard, tls: ssl.SSLContext, step: str, cut: Cut, expected: Told
) -> None:
    async with SmtpServer(SmtpScript(cuts={step: cut})) as server:
        outcome = await deliver(channel_to(server.port, guard, tls), message())
    assert told(outcome) == expected
    assert len(server.messages) == (1 if step == "dot" else 0)


@pytest.mark.parametrize(
    ("cut", "code"), [(Cut.CLOSE, "connection_lost"), (Cut.RESET, "connection_lost"), (Cut.HANG, "no_answer")]
)
@pytest.mark.parametrize("encrypted", [False, True])
async def test_content_that_was_never_taken_in_full_leaves_no_doubt(
    guard: Guard, tls: ssl.SSLContext, authority: Authority, cut: Cut, code: str, encrypted: bool
) -> None:
    """The final dot waits until the socket took every line before it."""
    context = authority.server_context("127.0.0.1") if encrypted else None
    async with SmtpServer(SmtpScript(cuts={"content": cut}), tls=context) as server:
        channel = channel_to(server.port, guard, tls, tls="implicit" if encrypted else "none")
        outcome = await deliver(channel, message(text=LARGE))
    assert told(outcome) == (TRANSIENT, Stage.BODY, code)
    assert server.messages == []


@pytest.mark.parametrize("encrypted", [False, True])
async def test_large_content_arrives_whole(
    guard: Guard, tls: ssl.SSLContext, authority: Authority, encrypted: bool
) -> None:
    context = authority.server_context("127.0.0.1") if encrypted else None
    async with SmtpServer(tls=context) as server:
        how = {"tls": "implicit" if encrypted else "none", "timeout_s": 20.0, "final_reply_timeout_s": 20.0}
        prepared = await channel_to(server.port, guard, tls, **how).prepare(message(text=LARGE))
        outcome = await prepared.send()
    assert outcome.kind is DELIVERED
    assert [hashlib.sha256(taken).hexdigest() for taken in server.messages] == [prepared.payload_hash]


async def test_nobody_listens(guard: Guard, tls: ssl.SSLContext) -> None:
    async with SmtpServer() as server:
        port = server.port
    outcome = await deliver(channel_to(port, guard, tls), message())
    assert told(outcome) == (TRANSIENT, Stage.CONNECT, "connect_refused")


async def test_a_failing_quit_changes_nothing(guard: Guard, tls: ssl.SSLContext) -> None:
    async with SmtpServer(SmtpScript(replies={"dot": "250 ok\r\n421 closing"})) as server:
        outcome = await deliver(channel_to(server.port, guard, tls), message())
    assert outcome.kind is DELIVERED


async def test_starttls_and_login(guard: Guard, tls: ssl.SSLContext, authority: Authority) -> None:
    script = SmtpScript(offers=("AUTH PLAIN",))
    async with SmtpServer(script, starttls=authority.server_context("127.0.0.1")) as server:
        login = {"tls": "starttls", "username": "relay-user", "password": SecretStr("word")}
        outcome = await deliver(channel_to(server.port, guard, tls, **login), message())
    assert outcome.kind is DELIVERED
    assert server.logins == ["relay-user"]
    assert [command.split(" ")[0] for command in server.commands[:4]] == ["EHLO", "STARTTLS", "EHLO", "AUTH"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("535 5.7.8 no", (REJECTED, Stage.HEADERS, "smtp_535_5.7.8")),
        ("534 5.7.9 weak", (REJECTED, Stage.HEADERS, "smtp_534_5.7.9")),
        ("454 4.7.0 later", (TRANSIENT, Stage.HEADERS, "smtp_454_4.7.0")),
    ],
)
async def test_a_refused_login_is_about_the_credential(
    guard: Guard, tls: ssl.SSLContext, reply: str, expected: Told
) -> None:
    async with SmtpServer(SmtpScript(replies={"auth": reply}, offers=("AUTH PLAIN",))) as server:
        login = {"username": "relay-user", "password": SecretStr("word")}
        outcome = await deliver(channel_to(server.port, guard, tls, **login), message())
    assert told(outcome) == expected
    assert outcome.scope is Scope.CREDENTIAL


async def test_a_relay_without_login_cannot_be_logged_in_to(guard: Guard, tls: ssl.SSLContext) -> None:
    async with SmtpServer() as server:
        outcome = await deliver(channel_to(server.port, guard, tls, username="relay-user"), message())
    assert told(outcome) == (REJECTED, Stage.HEADERS, "auth_unavailable")
    assert outcome.scope is Scope.CONFIG


async def test_a_relay_that_hides_starttls_gets_nothing(guard: Guard, tls: ssl.SSLContext) -> None:
    async with SmtpServer() as server:
        outcome = await deliver(channel_to(server.port, guard, tls, tls="starttls"), message())
    assert told(outcome) == (REJECTED, Stage.HEADERS, "starttls_missing")
    assert outcome.scope is Scope.CONFIG
    assert not any(command.startswith("MAIL") for command in server.commands)


async def test_a_refused_starttls_is_asked_again(guard: Guard, tls: ssl.SSLContext, authority: Authority) -> None:
    script = SmtpScript(replies={"starttls": "454 4.7.0 later"})
    async with SmtpServer(script, starttls=authority.server_context("127.0.0.1")) as server:
        outcome = await deliver(channel_to(server.port, guard, tls, tls="starttls"), message())
    assert told(outcome) == (TRANSIENT, Stage.HEADERS, "smtp_454_4.7.0")


@pytest.mark.parametrize("how", ["starttls", "implicit"])
@pytest.mark.parametrize("name", ["untrusted", "other.example"])
async def test_a_certificate_that_does_not_verify_is_for_somebody_to_mend(
    guard: Guard, tls: ssl.SSLContext, authority: Authority, how: str, name: str
) -> None:
    context = authority.server_context("127.0.0.1" if name == "untrusted" else name)
    server = SmtpServer(starttls=context) if how == "starttls" else SmtpServer(tls=context)
    async with server:
        trusted = trust() if name == "untrusted" else tls
        outcome = await deliver(channel_to(server.port, guard, trusted, tls=how), message())
    assert (outcome.kind, outcome.code, outcome.scope) == (REJECTED, "tls_failed", Scope.CONFIG)
    assert outcome.stage in (Stage.CONNECT, Stage.HEADERS)
    assert server.messages == []


@pytest.mark.parametrize(
    ("changes", "code", "scope"),
    [
        ({"destination": "jörg@example.com"}, "bad_address", Scope.RECIPIENT),
        ({"destination": "a@example.com\r\nDATA"}, "bad_address", Scope.RECIPIENT),
        ({"title": "one\r\nBcc: two@example.com"}, "unrenderable", Scope.MESSAGE),
        ({"text": "\ud800"}, "unrenderable", Scope.MESSAGE),
    ],
)
async def test_what_cannot_be_written_is_refused(
    guard: Guard, tls: ssl.SSLContext, changes: dict[str, str], code: str, scope: Scope
) -> None:
    outcome = await deliver(channel_to(1, guard, tls), message(**changes))
    assert (outcome.kind, outcome.stage, outcome.code, outcome.scope) == (REJECTED, Stage.PREPARE, code, scope)
    assert "example.com" not in repr(outcome)


async def test_an_international_domain_is_sent_as_an_a_label(guard: Guard, tls: ssl.SSLContext) -> None:
    async with SmtpServer() as server:
        await deliver(channel_to(server.port, guard, tls), message(destination="user@bücher.example"))
    assert "RCPT TO:<user@xn--bcher-kva.example>" in server.commands


async def test_a_private_relay_must_be_listed(tls: ssl.SSLContext) -> None:
    outcome = await deliver(channel_to(1, Guard(), tls), message())
    assert (outcome.kind, outcome.code, outcome.scope) == (REJECTED, "destination_forbidden", Scope.CONFIG)


async def test_no_outcome_repeats_the_address(guard: Guard, tls: ssl.SSLContext) -> None:
    reply = "550 5.1.1 <somebody@example.com> unknown, queued as somebody@example.com"
    async with SmtpServer(SmtpScript(replies={"rcpt": reply})) as server:
        outcome = await deliver(channel_to(server.port, guard, tls), message())
    assert "example.com" not in repr(outcome)


async def test_cancelling_closes_the_connection(guard: Guard, tls: ssl.SSLContext) -> None:
    async with SmtpServer(SmtpScript(cuts={"rcpt": Cut.HANG})) as server:
        prepared = await channel_to(server.port, guard, tls, timeout_s=30.0).prepare(message())
        sending = asyncio.ensure_future(prepared.send())
        async with asyncio.timeout(5):
            while not any(command.startswith("RCPT") for command in server.commands):
                await asyncio.sleep(0.005)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending


def test_the_deadline_covers_every_step(guard: Guard, tls: ssl.SSLContext) -> None:
    assert channel_to(1, guard, tls, timeout_s=30.0, final_reply_timeout_s=600.0).deadline_s > 600 + 10 * 30


def test_a_sender_that_is_no_address_stops_the_start(guard: Guard, tls: ssl.SSLContext) -> None:
    with pytest.raises(SettingsError, match=r"channels\.email\.smtp\.sender"):
        channel_to(1, guard, tls, sender="nobody at all")


class Kept(MessageHandler):
    """Keeps what the real server took."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_message(self, message: Any) -> None:
        """Called with each message."""
        self.texts.append(message.get_payload(decode=True).decode())


async def test_a_real_server_takes_the_message(guard: Guard, tls: ssl.SSLContext) -> None:
    kept = Kept()
    server = await asyncio.get_running_loop().create_server(
        lambda: RealSmtp(kept, hostname="real.example"), "127.0.0.1", 0
    )
    async with server:
        port = server.sockets[0].getsockname()[1]
        outcome = await deliver(channel_to(port, guard, tls), message(text="héllo\n.dot\n"))
    assert told(outcome) == (DELIVERED, Stage.ANSWERED, "smtp_250")
    assert kept.texts == ["héllo\r\n.dot\r\n"]
