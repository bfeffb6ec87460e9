"""Signed webhooks: what a receiver sees, and what each answer of theirs means."""

import hashlib
import json
import time
from pathlib import Path

import pytest
from pydantic import SecretStr
from standardwebhooks import Webhook

from channels.destinations import Guard
from channels.exchange import Exchange
from channels.secrets import Secrets
from channels.webhook import WebhookChannel
from domain.outcome import OutcomeKind, Scope, Stage
from settings import WebhookSettings
from tests.channels.samples import Told, deliver, message, told
from tests.doubles import http_receiver as http
from tests.doubles.http_receiver import Behaviour, HttpReceiver

OLD, NEW = "whsec_b2xkIHNlY3JldCBvZiB0aGUgdGVzdHMsIDMyIGI=", "whsec_bmV3IHNlY3JldCBvZiB0aGUgdGVzdHMsIDMyIGI="


@pytest.fixture
def channel(guard: Guard, exchange: Exchange, secrets_dir: Path) -> WebhookChannel:
    """Signs with `main` unless the message says otherwise."""
    secrets = Secrets(secrets_dir, {"text": SecretStr("plain-text-secret")})
    return WebhookChannel(WebhookSettings(timeout_s=0.25, default_secret="main"), guard, secrets, exchange)


async def test_the_receiver_can_verify_what_it_got(channel: WebhookChannel, secrets_dir: Path) -> None:
    (secrets_dir / "main").write_text(f"{OLD}\n{NEW}\n")
    async with HttpReceiver() as receiver:
        outcome = await deliver(channel, message(destination=f"{receiver.url}/hook"))
    assert told(outcome) == (OutcomeKind.DELIVERED, Stage.ANSWERED, "http_200")
    (request,) = receiver.requests
    assert request.line == "POST /hook HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-bailing-event-id"] == request.headers["webhook-id"] == "k7_notification_42"
    assert b"\r\nX-Bailing-Event-Id: " in request.head
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 5
    for secret in (OLD, NEW):
        Webhook(secret).verify(request.body, request.headers)


async def test_the_body_is_compact_and_in_the_order_it_was_accepted(channel: WebhookChannel) -> None:
    async with HttpReceiver() as receiver:
        await deliver(channel, message(destination=receiver.url))
    assert receiver.requests[0].body == (
        b'{"notification_event_id":"k7_notification_42","kind":"user_notification",'
        b'"occurred_at":"2026-03-04T05:06:07Z",'
        b'"data":{"zebra":1,"alpha":{"n":1.5,"big":12345678901234567890},"text":"h\xc3\xa9llo"}}'
    )


async def test_every_attempt_has_the_same_body_and_hash(channel: WebhookChannel) -> None:
    async with HttpReceiver() as receiver:
        prepared = [await channel.prepare(message(destination=receiver.url)) for _ in range(2)]
        for each in prepared:
            await each.send()
    assert receiver.requests[0].body == receiver.requests[1].body
    assert {each.payload_hash for each in prepared} == {hashlib.sha256(receiver.requests[0].body).hexdigest()}


async def test_preparing_sends_nothing(channel: WebhookChannel) -> None:
    async with HttpReceiver() as receiver:
        await channel.prepare(message(destination=receiver.url))
    assert receiver.connections == 0


async def test_a_text_secret_signs_with_its_bytes(channel: WebhookChannel) -> None:
    async with HttpReceiver() as receiver:
        await deliver(channel, message(destination=receiver.url, secret_ref="text"))
    Webhook(b"plain-text-secret").verify(receiver.requests[0].body, receiver.requests[0].headers)


async def test_the_default_secret_signs_when_none_is_named(channel: WebhookChannel, secrets_dir: Path) -> None:
    async with HttpReceiver() as receiver:
        await deliver(channel, message(destination=receiver.url, secret_ref=None))
    Webhook((secrets_dir / "main").read_text().strip()).verify(receiver.requests[0].body, receiver.requests[0].headers)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (http.answer(204), (OutcomeKind.DELIVERED, Stage.ANSWERED, "http_204")),
        (http.status_then_hang(200), (OutcomeKind.DELIVERED, Stage.ANSWERED, "http_200")),
        (http.truncated(200), (OutcomeKind.DELIVERED, Stage.ANSWERED, "http_200")),
        (http.endless(200), (OutcomeKind.DELIVERED, Stage.ANSWERED, "http_200")),
        (http.gzip_bomb(5), (OutcomeKind.DELIVERED, Stage.ANSWERED, "http_200")),
        (http.truncated(500), (OutcomeKind.TRANSIENT, Stage.ANSWERED, "http_500")),
        (http.answer(503), (OutcomeKind.TRANSIENT, Stage.ANSWERED, "http_503")),
        (http.answer(429), (OutcomeKind.TRANSIENT, Stage.ANSWERED, "http_429")),
        (http.answer(409), (OutcomeKind.REJECTED, Stage.ANSWERED, "http_409")),
        (http.answer(410), (OutcomeKind.REJECTED, Stage.ANSWERED, "http_410")),
        (http.redirect("http://127.0.0.1:1/"), (OutcomeKind.REJECTED, Stage.ANSWERED, "http_307")),
        (http.read_then_hang, (OutcomeKind.UNCERTAIN, Stage.REPLY, "no_answer")),
        (http.read_then_close, (OutcomeKind.UNCERTAIN, Stage.REPLY, "connection_lost")),
    ],
)
async def test_what_the_receiver_does_decides(channel: WebhookChannel, behaviour: Behaviour, expected: Told) -> None:
    async with HttpReceiver(behaviour) as receiver:
        outcome = await deliver(channel, message(destination=receiver.url))
    assert told(outcome) == expected
    assert len(receiver.requests) == 1


async def test_retry_after_is_passed_on(channel: WebhookChannel) -> None:
    async with HttpReceiver(http.answer(429, {"Retry-After": "17"})) as receiver:
        outcome = await deliver(channel, message(destination=receiver.url))
    assert outcome.retry_after_s == 17.0


@pytest.mark.parametrize(
    ("changes", "kind", "code", "scope"),
    [
        ({"destination": "http://10.0.0.1/x"}, OutcomeKind.REJECTED, "destination_forbidden", Scope.RECIPIENT),
        ({"destination": "mailto:somebody"}, OutcomeKind.REJECTED, "bad_address", Scope.RECIPIENT),
        ({"destination": "http://nowhere.invalid/"}, OutcomeKind.TRANSIENT, "dns_failed", Scope.RECIPIENT),
        ({"secret_ref": "unknown"}, OutcomeKind.TRANSIENT, "secret_missing", Scope.CONFIG),
        ({"secret_ref": "broken"}, OutcomeKind.TRANSIENT, "secret_malformed", Scope.CONFIG),
        ({"data": {"x": float("nan")}}, OutcomeKind.REJECTED, "unrenderable", Scope.MESSAGE),
        ({"data": {"x": "\ud800"}}, OutcomeKind.REJECTED, "unrenderable", Scope.MESSAGE),
    ],
)
async def test_what_fails_before_a_connection_was_not_sent(
    channel: WebhookChannel, secrets_dir: Path, changes: dict[str, object], kind: OutcomeKind, code: str, scope: Scope
) -> None:
    (secrets_dir / "broken").write_text("whsec_not/base64!")
    outcome = await deliver(channel, message(**{"destination": "http://127.0.0.1:1/", **changes}))
    assert (outcome.kind, outcome.stage, outcome.code, outcome.scope) == (kind, Stage.PREPARE, code, scope)


async def test_no_outcome_repeats_the_address_or_the_answer(channel: WebhookChannel) -> None:
    async with HttpReceiver(http.answer(500, body=b"no such canary@example.com")) as receiver:
        outcome = await deliver(channel, message(destination=f"{receiver.url}/canary"))
    assert "canary" not in json.dumps(repr(outcome))
    assert "127.0.0.1" not in repr(outcome)
