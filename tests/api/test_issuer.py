"""An issuer that publishes its keys, and one that misbehaves: nobody gets in, and nobody else waits for it."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from settings import load
from store import migrate
from store.database import Stores
from tests.api.deadline import until
from tests.api.served import Served, served
from tests.api.test_tokens import LIST, claims
from tests.doubles.http_receiver import (
    HttpReceiver,
    answer,
    close_unread,
    garbage,
    half_a_status_line,
    read_then_reset,
    redirect,
    truncated,
)
from tests.doubles.threads import in_thread

KEY = ec.generate_private_key(ec.SECP256R1())


def published(*names: str) -> bytes:
    """A key set that names our key so."""
    key = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key()))
    return json.dumps({"keys": [{**key, "kid": name, "alg": "ES256", "use": "sig"} for name in names]}).encode()


def token(name: str = "k") -> str:
    return jwt.encode(claims(), KEY, algorithm="ES256", headers={"kid": name})


@contextmanager
def trusting(directory: Path, issuer: str) -> Iterator[Served]:
    """An application that trusts this issuer."""
    url = f"sqlite:///{directory}/a.db"
    stores = Stores.open(url, url, connections=4)
    migrate.upgrade(stores.state)
    with served(load(state_database_url=url, auth={"jwks_url": issuer}), stores) as one:
        yield one
    stores.close()


def ask(one: Served, name: str = "k") -> int:
    with one.client(token=token(name)) as client:
        return client.get(LIST).status_code


FAULTS: dict[str, Any] = {
    "500": answer(500),
    "not JSON": answer(200, body=b"<html>"),
    "not UTF-8": answer(200, body=b"\xff"),
    "not an object": answer(200, body=b"[]"),
    "no keys": answer(200, body=b'{"keys": []}'),
    "keys that are none": answer(200, body=b'{"keys": [1]}'),
    "elsewhere": redirect("http://127.0.0.1:9/"),
    "closed": close_unread,
    "reset": read_then_reset,
    "another protocol": garbage,
    "half an answer": half_a_status_line,
    "cut short": truncated(),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_while_the_keys_cannot_be_had_the_answer_is_503(tmp_path: Path, fault: Any) -> None:
    with in_thread(HttpReceiver(fault)) as issuer, trusting(tmp_path, issuer.url) as one:
        assert ask(one) == 503


def test_an_issuer_that_was_away_is_asked_again_but_not_for_every_token(tmp_path: Path) -> None:
    with in_thread(HttpReceiver(answer(500))) as issuer, trusting(tmp_path, issuer.url) as one:
        assert [ask(one) for _ in range(3)] == [503] * 3
        assert len(issuer.requests) < 3
        issuer.default = answer(200, body=published("k"))
        until(lambda: ask(one) == 200)


def test_keys_are_kept_and_an_unknown_name_does_not_ask_every_time(tmp_path: Path) -> None:
    with in_thread(HttpReceiver(answer(200, body=published("k")))) as issuer, trusting(tmp_path, issuer.url) as one:
        assert [ask(one), ask(one), ask(one)] == [200, 200, 200]
        assert [ask(one, f"unknown-{number}") for number in range(5)] == [401] * 5
        assert len(issuer.requests) == 1


def test_a_slow_issuer_holds_up_only_those_who_need_it(tmp_path: Path) -> None:
    slow = HttpReceiver(answer(200, body=published("k"), delay_s=2))
    with in_thread(slow) as issuer, trusting(tmp_path, issuer.url) as one, ThreadPoolExecutor(1) as caller:
        asked = caller.submit(ask, one)
        until(lambda: len(issuer.requests) > 0)
        assert httpx.get(f"{one.url}/health/live", trust_env=False).status_code == 200
        assert not asked.done()
        assert asked.result() == 200
