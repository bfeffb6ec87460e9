"""WeCom application messages, whose errors come inside an HTTP 200."""

import asyncio
import json
from typing import Any

import pytest
from pydantic import SecretStr

from channels.destinations import Guard
from channels.exchange import Exchange
from channels.wecom import WeComChannel
from channels.wecom_token import AccessToken
from domain.errors import NotSendable
from domain.outcome import Outcome, OutcomeKind, Scope, Stage
from settings import WeComSettings
from tests.channels.samples import Told, deliver, message, told
from tests.doubles import http_receiver as http
from tests.doubles.http_receiver import Behaviour
from tests.doubles.wecom import WeComServer, says

DELIVERED, REJECTED = OutcomeKind.DELIVERED, OutcomeKind.REJECTED
TRANSIENT, UNCERTAIN = OutcomeKind.TRANSIENT, OutcomeKind.UNCERTAIN


def settings_for(server: WeComServer) -> WeComSettings:
    return WeComSettings(
        base_url=server.url, corp_id="corp", corp_secret=SecretStr("s&cret"), agent_id=7, timeout_s=0.25
    )


def channel_to(server: WeComServer, guard: Guard, exchange: Exchange) -> WeComChannel:
    return WeComChannel(settings_for(server), guard, exchange)


async def send(guard: Guard, exchange: Exchange, server: WeComServer, **changes: Any) -> Outcome:
    return await deliver(channel_to(server, guard, exchange), message(**{"destination": "ZhangSan", **changes}))


async def test_a_message_reaches_one_user(guard: Guard, exchange: Exchange) -> None:
    async with WeComServer() as server:
        outcome = await send(guard, exchange, server)
    assert told(outcome) == (DELIVERED, Stage.ANSWERED, "wecom_0")
    assert outcome.provider_message_id == "msg-1"
    assert [request.path for request in server.requests] == [
        "/cgi-bin/gettoken?corpid=corp&corpsecret=s%26cret",
        "/cgi-bin/message/send?access_token=token-1",
    ]
    text = {"content": "Build finished\n\nAll 12 steps passed."}
    assert server.messages == [{"touser": "ZhangSan", "msgtype": "text", "agentid": 7, "text": text}]


@pytest.mark.parametrize("user", ["@all", "a|b", "", "a b", "a\nb", "a" * 65, "张三"])
async def test_nothing_but_one_user_is_a_destination(guard: Guard, exchange: Exchange, user: str) -> None:
    async with WeComServer() as server:
        outcome = await send(guard, exchange, server, destination=user)
    assert (outcome.kind, outcome.code, outcome.scope) == (REJECTED, "bad_address", Scope.RECIPIENT)
    assert server.connections == 0


ANSWERS: list[tuple[Behaviour, Told, Scope]] = [
    (says(-1), (UNCERTAIN, Stage.ANSWERED, "wecom_-1"), Scope.MESSAGE),
    (says(6000), (TRANSIENT, Stage.ANSWERED, "wecom_6000"), Scope.ACCOUNT),
    (says(45009), (TRANSIENT, Stage.ANSWERED, "wecom_45009"), Scope.ACCOUNT),
    (says(45033), (TRANSIENT, Stage.ANSWERED, "wecom_45033"), Scope.ACCOUNT),
    (says(40014), (TRANSIENT, Stage.ANSWERED, "wecom_40014"), Scope.CREDENTIAL),
    (says(40001), (REJECTED, Stage.ANSWERED, "wecom_40001"), Scope.CREDENTIAL),
    (says(60111), (REJECTED, Stage.ANSWERED, "wecom_60111"), Scope.RECIPIENT),
    (says(81013), (REJECTED, Stage.ANSWERED, "wecom_81013"), Scope.RECIPIENT),
    (says(45002), (REJECTED, Stage.ANSWERED, "wecom_45002"), Scope.MESSAGE),
    (says(60020), (REJECTED, Stage.ANSWERED, "wecom_60020"), Scope.ACCOUNT),
    (says(99999), (UNCERTAIN, Stage.ANSWERED, "wecom_99999"), Scope.MESSAGE),
    (says(0, invaliduser="lisi|zhangsan"), (REJECTED, Stage.ANSWERED, "bad_address"), Scope.RECIPIENT),
    (says(0, unlicenseduser="zhangsan"), (REJECTED, Stage.ANSWERED, "wecom_unlicensed"), Scope.ACCOUNT),
    (says(0, invaliduser="zhangsan2"), (DELIVERED, Stage.ANSWERED, "wecom_0"), Scope.MESSAGE),
    (says(0, msgid=12), (DELIVERED, Stage.ANSWERED, "wecom_0"), Scope.MESSAGE),
    (http.answer(body=b"<html>welcome</html>"), (UNCERTAIN, Stage.REPLY, "bad_answer"), Scope.MESSAGE),
    (http.answer(body=b'{"errcode":"0"}'), (UNCERTAIN, Stage.REPLY, "bad_answer"), Scope.MESSAGE),
    (http.answer(body=b"[" * 60_000), (UNCERTAIN, Stage.REPLY, "bad_answer"), Scope.MESSAGE),
    (http.answer(body=b""), (UNCERTAIN, Stage.REPLY, "bad_answer"), Scope.MESSAGE),
    (http.truncated(body=b'{"errcode":0}'), (UNCERTAIN, Stage.REPLY, "bad_answer"), Scope.MESSAGE),
    (http.status_then_hang(200), (UNCERTAIN, Stage.REPLY, "bad_answer"), Scope.MESSAGE),
    (http.answer(502), (UNCERTAIN, Stage.ANSWERED, "http_502"), Scope.MESSAGE),
    (http.answer(429), (TRANSIENT, Stage.ANSWERED, "http_429"), Scope.MESSAGE),
    (http.answer(404), (REJECTED, Stage.ANSWERED, "http_404"), Scope.MESSAGE),
    (http.redirect("http://127.0.0.1:1/"), (REJECTED, Stage.ANSWERED, "http_307"), Scope.CONFIG),
    (http.read_then_hang, (UNCERTAIN, Stage.REPLY, "no_answer"), Scope.MESSAGE),
    (http.read_then_close, (UNCERTAIN, Stage.REPLY, "connection_lost"), Scope.MESSAGE),
]


@pytest.mark.parametrize(("behaviour", "expected", "scope"), ANSWERS)
async def test_an_answer_means_what_its_code_says(
    guard: Guard, exchange: Exchange, behaviour: Behaviour, expected: Told, scope: Scope
) -> None:
    async with WeComServer() as server:
        server.send_script.append(behaviour)
        outcome = await send(guard, exchange, server)
    assert told(outcome) == expected
    assert outcome.scope is scope
    assert len(server.messages) == 1


TOKEN_ANSWERS: list[tuple[Behaviour, OutcomeKind, str, Scope]] = [
    (says(-1), TRANSIENT, "wecom_-1", Scope.CREDENTIAL),
    (says(40001), REJECTED, "wecom_40001", Scope.CREDENTIAL),
    (says(40013), REJECTED, "wecom_40013", Scope.CREDENTIAL),
    (says(40056), REJECTED, "wecom_40056", Scope.CREDENTIAL),
    (says(0), TRANSIENT, "bad_answer", Scope.CONFIG),
    (says(0, access_token="", expires_in=7200), TRANSIENT, "bad_answer", Scope.CONFIG),
    (http.answer(body=b"no json"), TRANSIENT, "bad_answer", Scope.CONFIG),
    (http.answer(503), TRANSIENT, "http_503", Scope.CONFIG),
    (http.read_then_hang, TRANSIENT, "no_answer", Scope.CONFIG),
    (http.read_then_close, TRANSIENT, "connection_lost", Scope.CONFIG),
]


@pytest.mark.parametrize(("behaviour", "kind", "code", "scope"), TOKEN_ANSWERS)
async def test_without_a_token_nothing_was_sent(
    guard: Guard, exchange: Exchange, behaviour: Behaviour, kind: OutcomeKind, code: str, scope: Scope
) -> None:
    async with WeComServer() as server:
        server.token_script.append(behaviour)
        outcome = await send(guard, exchange, server)
    assert (outcome.kind, outcome.stage, outcome.code, outcome.scope) == (kind, Stage.PREPARE, code, scope)
    assert server.messages == []
    assert "s&cret" not in repr(outcome)


async def test_a_token_serves_many_messages(guard: Guard, exchange: Exchange) -> None:
    async with WeComServer() as server:
        channel = channel_to(server, guard, exchange)
        await asyncio.gather(*(deliver(channel, message(destination="a")) for _ in range(10)))
        await deliver(channel, message(destination="a"))
    assert server.tokens == 1
    assert len(server.messages) == 11


async def test_a_refused_token_is_replaced(guard: Guard, exchange: Exchange) -> None:
    async with WeComServer() as server:
        channel = channel_to(server, guard, exchange)
        server.send_script.append(says(42001))
        first = await deliver(channel, message(destination="a"))
        second = await deliver(channel, message(destination="a"))
    assert (first.kind, second.kind) == (TRANSIENT, DELIVERED)
    assert server.requests[-1].path.endswith("access_token=token-2")


async def test_a_token_is_replaced_before_it_expires(guard: Guard, exchange: Exchange) -> None:
    now = 0.0
    async with WeComServer() as server:
        token = AccessToken(settings_for(server), guard, exchange, lambda: now)
        assert await token.get() == "token-1"
        now = 6_899.0
        assert await token.get() == "token-1"
        now = 6_900.0
        assert await token.get() == "token-2"
        token.drop("token-1")
        assert await token.get() == "token-2"


async def test_callers_share_a_failed_fetch(guard: Guard, exchange: Exchange) -> None:
    async with WeComServer() as server:
        server.token_script.append(http.read_then_hang)
        token = AccessToken(settings_for(server), guard, exchange)
        failed = await asyncio.gather(*(token.get() for _ in range(5)), return_exceptions=True)
        assert all(isinstance(each, NotSendable) for each in failed)
        assert server.tokens == 1
        assert await token.get() == "token-2"


async def test_every_attempt_has_the_same_body(guard: Guard, exchange: Exchange) -> None:
    async with WeComServer() as server:
        channel = channel_to(server, guard, exchange)
        hashes = {(await channel.prepare(message(destination="a"))).payload_hash for _ in range(2)}
    assert len(hashes) == 1


async def test_a_private_provider_must_be_listed(exchange: Exchange) -> None:
    async with WeComServer() as server:
        outcome = await send(Guard(), exchange, server)
    assert (outcome.kind, outcome.code, outcome.scope) == (REJECTED, "destination_forbidden", Scope.CONFIG)


async def test_text_that_cannot_be_written_is_refused(guard: Guard, exchange: Exchange) -> None:
    async with WeComServer() as server:
        outcome = await send(guard, exchange, server, text="\ud800")
    assert (outcome.kind, outcome.code) == (REJECTED, "unrenderable")


async def test_no_outcome_repeats_the_user_or_the_text(guard: Guard, exchange: Exchange) -> None:
    async with WeComServer() as server:
        server.send_script.append(http.answer(body=json.dumps({"errcode": 60111, "errmsg": "ZhangSan"}).encode()))
        outcome = await send(guard, exchange, server)
    assert "ZhangSan" not in repr(outcome)
