"""The address guard against every spelling of a place that is none of a sender's business."""

import socket
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest

from channels.destinations import Guard
from channels.exchange import Exchange, Reply
from channels.tls import trust
from domain.errors import NotSendable
from domain.outcome import Outcome, OutcomeKind, Scope
from tests.doubles.http_receiver import HttpReceiver

FORBIDDEN = (
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://017700000001/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://0.0.0.0/",
    "http://10.1.2.3/",
    "http://100.64.0.1/",
    "http://168.63.129.16/metadata",
    "http://169.254.169.254/latest/meta-data/",
    "http://172.31.255.255/",
    "http://192.0.0.8/",
    "http://192.0.2.1/",
    "http://192.88.99.1/",
    "http://192.168.0.1:8080/",
    "http://198.18.0.1/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]:3306/",
    "http://[::]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[0:0:0:0:0:ffff:10.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::1]/",
    "http://[100::1]/",
    "http://[2001::1]/",
    "http://[2001:db8::1]/",
    "http://[2002:7f00:1::]/",
    "http://[3fff::1]/",
    "http://[5f00::1]/",
    "http://[fd00::1]/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
)

MALFORMED = (
    "",
    "example.com",
    "//example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "http://",
    "http:///path",
    "http://user@example.com/",
    "http://user:word@example.com/",
    "http://good.example\\@127.0.0.1/",
    "http://example.com/#fragment",
    "http://example.com:0/",
    "http://example.com:65536/",
    "http://example.com:port/",
    "http://exa mple.com/",
    "http://example.com\r\nHost: other/",
    "http://0177.0.0.1/",
    "http://127.0.0.256/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127%2e0%2e0%2e1/",
    "http://[fe80::1%25eth0]/",
    "http://[::1/",
    f"http://{'a' * 64}.example/",
    "http://a..example/",
)


def resolver(answers: list[list[str]]) -> Callable[..., list[Any]]:
    """A name server that gives one answer after the other."""
    turns = iter(answers)
    return lambda *_asked, **_how: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in next(turns)]


async def refusal(guard: Guard, url: str) -> Outcome:
    with pytest.raises(NotSendable) as refused:
        await guard.target(url, Scope.RECIPIENT)
    assert url == "" or url not in f"{refused.value!s}{refused.value!r}{refused.value.outcome!r}"
    return refused.value.outcome


@pytest.mark.parametrize("url", FORBIDDEN)
async def test_special_addresses_are_refused_however_they_are_spelt(url: str) -> None:
    outcome = await refusal(Guard(), url)
    assert (outcome.kind, outcome.code, outcome.scope) == (
        OutcomeKind.REJECTED,
        "destination_forbidden",
        Scope.RECIPIENT,
    )


@pytest.mark.parametrize("url", MALFORMED)
async def test_what_is_no_plain_http_url_is_refused(url: str) -> None:
    outcome = await refusal(Guard(), url)
    assert (outcome.kind, outcome.code) == (OutcomeKind.REJECTED, "bad_address")


async def test_a_name_without_an_address_may_have_one_later() -> None:
    outcome = await refusal(Guard(), "http://nowhere.invalid/")
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "dns_failed")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://[::ffff:127.0.0.1]:1/", "http://127.1/"])
async def test_a_listed_network_is_allowed_in_every_spelling(guard: Guard, url: str) -> None:
    target = await guard.target(url, Scope.RECIPIENT)
    assert target.addresses
    assert set(target.addresses) <= {"127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1"}


@pytest.mark.parametrize("addresses", [["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"], ["8.8.8.8", "fe80::1%eth0"]])
async def test_one_forbidden_address_forbids_the_host(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolver([addresses]))
    outcome = await refusal(Guard(), "http://mixed.example/")
    assert outcome.code == "destination_forbidden"


async def test_a_name_that_changes_after_the_check_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer is what a send connects to; a second look would have found another host."""
    monkeypatch.setattr(socket, "getaddrinfo", resolver([["127.0.0.1"], ["127.0.0.2"]]))
    exchange = Exchange(trust())
    async with HttpReceiver() as receiver:
        url = f"http://rebinding.example:{receiver.port}/"
        target = await Guard([ip_network("127.0.0.1/32")]).target(url, Scope.RECIPIENT)
        reply = await exchange.request("POST", target, {}, b"{}", 5.0)
    await exchange.close()
    assert isinstance(reply, Reply)
    with pytest.raises(NotSendable):
        await Guard([ip_network("127.0.0.1/32")]).target(url, Scope.RECIPIENT)


@pytest.mark.parametrize("url", ["https://8.8.8.8/", "http://[2606:4700::1111]:8080/hook", "http://172.32.0.1/"])
async def test_public_addresses_are_allowed(url: str) -> None:
    target = await Guard().target(url, Scope.RECIPIENT)
    assert str(target.url) == url
    assert url not in repr(target)
