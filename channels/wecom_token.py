"""The WeCom access token: fetched by one caller for all, kept until shortly before it expires."""

import asyncio
import time
from collections.abc import Callable
from urllib.parse import urlencode

from channels.destinations import Guard
from channels.exchange import Broken, Exchange
from channels.wecom_answer import CREDENTIAL_CODES, Answer
from domain.errors import NotSendable
from domain.outcome import Scope, not_sent
from settings import WeComSettings

MARGIN_S = 300.0


class AccessToken:
    """Callers that come while a fetch runs share its token or its failure."""

    def __init__(
        self, settings: WeComSettings, guard: Guard, exchange: Exchange, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._guard = guard
        self._exchange = exchange
        self._clock = clock
        self._fetching: asyncio.Task[str] | None = None
        self._token: str | None = None
        self._fresh_until = 0.0

    async def get(self) -> str:
        """A token that is good for a while. Raises NotSendable."""
        if self._token is not None and self._clock() < self._fresh_until:
            return self._token
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._refresh())
        return await asyncio.shield(self._fetching)

    def drop(self, token: str) -> None:
        """Forgets a token that the provider refused, unless a newer one is here already."""
        if self._token == token:
            self._token = None

    async def _refresh(self) -> str:
        try:
            token, lifetime_s = await self._fetch()
        finally:
            self._fetching = None
        self._token = token
        self._fresh_until = self._clock() + max(lifetime_s - MARGIN_S, lifetime_s / 2)
        return token

    async def _fetch(self) -> tuple[str, float]:
        query = urlencode(
            {"corpid": self._settings.corp_id, "corpsecret": self._settings.corp_secret.get_secret_value()}
        )
        url = f"{self._settings.base_url.rstrip('/')}/cgi-bin/gettoken?{query}"
        target = await self._guard.target(url, Scope.CONFIG)
        reply = await self._exchange.request("GET", target, {}, b"", self._settings.timeout_s)
        if isinstance(reply, Broken):
            raise NotSendable(not_sent(reply.code, scope=Scope.CONFIG, permanent=reply.permanent))
        if reply.status != 200:
            raise NotSendable(not_sent(f"http_{reply.status}", scope=Scope.CONFIG))
        return _token(Answer.read(reply))


def _token(answer: Answer | None) -> tuple[str, float]:
    if answer is None:
        raise NotSendable(not_sent("bad_answer", scope=Scope.CONFIG))
    if answer.errcode != 0:
        refused = answer.errcode in CREDENTIAL_CODES
        raise NotSendable(not_sent(answer.code, scope=Scope.CREDENTIAL, permanent=refused))
    token, lifetime_s = answer.fields.get("access_token"), answer.fields.get("expires_in")
    if not isinstance(token, str) or not token or not isinstance(lifetime_s, int):
        raise NotSendable(not_sent("bad_answer", scope=Scope.CONFIG))
    return token, float(lifetime_s)
