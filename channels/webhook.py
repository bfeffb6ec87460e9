"""Signed webhooks: one POST to the receiver's URL, which dedupes on our event id."""

import hashlib
import json
import time

from channels import signing
from channels.destinations import Guard, Target
from channels.exchange import Broken, Exchange
from channels.port import Message, Prepared
from channels.secrets import Secrets
from channels.statuses import safe_outcome
from domain.errors import NotSendable
from domain.outcome import Outcome, Scope, not_sent
from settings import WebhookSettings


class WebhookChannel:
    """The receiver's HTTP status alone decides."""

    channel = "webhook"
    provider = "http"
    native = False

    def __init__(self, settings: WebhookSettings, guard: Guard, secrets: Secrets, exchange: Exchange) -> None:
        self.deadline_s = settings.timeout_s
        self._default_secret = settings.default_secret
        self._guard = guard
        self._secrets = secrets
        self._exchange = exchange

    async def prepare(self, message: Message) -> Prepared:
        """Renders, reads the secrets and pins the address."""
        body = _body(message)
        keys = self._keys(message.tenant, message.secret_ref or self._default_secret)
        target = await self._guard.target(message.destination, Scope.RECIPIENT)

        async def send() -> Outcome:
            return await self._send(target, _headers(message.event_id, keys, body), body)

        return Prepared(hashlib.sha256(body).hexdigest(), send)

    async def close(self) -> None:
        """Closes every connection still open."""
        await self._exchange.close()

    def _keys(self, tenant: str, name: str | None) -> tuple[bytes, ...]:
        try:
            return signing.keys(self._secrets.live(tenant, name))
        except signing.MalformedSecret:
            raise NotSendable(not_sent("secret_malformed", scope=Scope.CONFIG)) from None

    async def _send(self, target: Target, headers: dict[str, str], body: bytes) -> Outcome:
        answer = await self._exchange.request("POST", target, headers, body, self.deadline_s)
        return answer.outcome() if isinstance(answer, Broken) else safe_outcome(answer.status, answer.headers)


def _body(message: Message) -> bytes:
    """The same bytes for the same event: keys stay in the order in which they were accepted."""
    document = {
        "notification_event_id": message.event_id,
        "kind": message.kind,
        "occurred_at": message.occurred_at,
        "data": message.data,
    }
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:  # NaN, or half of a surrogate pair
        raise NotSendable(not_sent("unrenderable", permanent=True)) from None


def _headers(event_id: str, keys: tuple[bytes, ...], body: bytes) -> dict[str, str]:
    """Signed at the moment of sending: receivers refuse an old timestamp."""
    now = int(time.time())
    return {
        "Content-Type": "application/json",
        "User-Agent": "Tidings",
        "X-Bailing-Event-Id": event_id,
        "webhook-id": event_id,
        "webhook-timestamp": str(now),
        "webhook-signature": signing.signature(keys, event_id, now, body),
    }
