"""WeCom (企业微信) application messages to one user."""

import hashlib
import json
import re
from urllib.parse import urlencode

from channels.destinations import Guard, Target
from channels.exchange import Broken, Exchange
from channels.port import Message, Prepared
from channels.statuses import native_outcome
from channels.wecom_answer import TOKEN_CODES, Answer
from channels.wecom_token import AccessToken
from domain.errors import NotSendable
from domain.outcome import Outcome, OutcomeKind, Scope, Stage, not_sent
from settings import WeComSettings

# One user id. `@all` would reach the whole company and `|` separates several users, so neither can be one.
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class WeComChannel:
    """WeCom can suppress equal messages for a while, but a suppressed one looks like a delivered one: not used."""

    channel = "wecom"
    provider = "wecom"
    native = True

    def __init__(self, settings: WeComSettings, guard: Guard, exchange: Exchange) -> None:
        self.deadline_s = settings.timeout_s
        self._agent_id = settings.agent_id
        self._send_url = f"{settings.base_url.rstrip('/')}/cgi-bin/message/send"
        self._guard = guard
        self._exchange = exchange
        self._token = AccessToken(settings, guard, exchange)

    async def prepare(self, message: Message) -> Prepared:
        """Renders, obtains the token and pins the address."""
        user = _user(message.destination)
        body = self._body(message, user)
        token = await self._token.get()
        target = await self._guard.target(f"{self._send_url}?{urlencode({'access_token': token})}", Scope.CONFIG)

        async def send() -> Outcome:
            return await self._send(target, body, user, token)

        return Prepared(hashlib.sha256(body).hexdigest(), send)

    async def close(self) -> None:
        """Closes every connection still open."""
        await self._exchange.close()

    def _body(self, message: Message, user: str) -> bytes:
        document = {
            "touser": user,
            "msgtype": "text",
            "agentid": self._agent_id,
            "text": {"content": f"{message.title}\n\n{message.text}"},
        }
        try:
            return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        except ValueError:  # half of a surrogate pair
            raise NotSendable(not_sent("unrenderable", permanent=True)) from None

    async def _send(self, target: Target, body: bytes, user: str, token: str) -> Outcome:
        headers = {"Content-Type": "application/json"}
        reply = await self._exchange.request("POST", target, headers, body, self.deadline_s)
        if isinstance(reply, Broken):
            return reply.outcome()
        if not 200 <= reply.status < 300:
            return native_outcome(reply.status, reply.headers)
        answer = Answer.read(reply)
        if answer is None:
            return Outcome(OutcomeKind.UNCERTAIN, "bad_answer", Stage.REPLY, http_status=reply.status)
        if answer.errcode in TOKEN_CODES:
            self._token.drop(token)
        return answer.outcome(user)


def _user(destination: str) -> str:
    if not _USER.fullmatch(destination):
        raise NotSendable(not_sent("bad_address", scope=Scope.RECIPIENT, permanent=True))
    return destination
