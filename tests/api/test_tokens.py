"""Who may do what: every route names its permission, and a token proves who asks before anything else is looked at."""

import base64
import hmac
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from fastapi.routing import APIRoute

from api.app import PUBLIC_ROUTES, ROUTERS, create_app
from api.auth import permission_of
from settings import SettingsError, load
from store import migrate
from store.database import Stores
from tests.api.served import EVERYTHING, SECRET, Served, served
from tests.doubles.http_receiver import HttpReceiver, answer
from tests.doubles.threads import in_thread

CLAIMS: dict[str, Any] = {"sub": "me", "tenant": "t", "permissions": list(EVERYTHING)}
LIST = "/admin/api/notification-outbox"


def claims(**changes: Any) -> dict[str, Any]:
    fresh = {**CLAIMS, "exp": datetime.now(UTC) + timedelta(hours=1), **changes}
    return {name: value for name, value in fresh.items() if value is not None}


def unsigned(header: dict[str, Any], payload: dict[str, Any]) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(part, default=str).encode()).rstrip(b"=") for part in (header, payload)
    ]
    return b".".join([*parts, b"AAAA"]).decode()


def confused(public_key: bytes) -> str:
    """A token signed with the published key as if that were a secret; PyJWT would refuse to make it."""
    start = unsigned({"alg": "HS256", "kid": "k"}, claims(exp=9_999_999_999)).rpartition(".")[0]
    signature = hmac.digest(public_key, start.encode(), "sha256")
    return f"{start}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


BROKEN = {
    "garbage": "garbage",
    "three dots": "a.b.c",
    "odd bytes": "\xe9\xe9",
    "expired": jwt.encode(claims(exp=datetime.now(UTC) - timedelta(hours=1)), SECRET),
    "another key": jwt.encode(claims(), SECRET[::-1]),
    "no algorithm": unsigned({"alg": "none"}, claims(exp=9_999_999_999)),
    "another algorithm": jwt.encode(claims(), SECRET * 2, algorithm="HS512"),
    "an RS256 header": unsigned({"alg": "RS256"}, claims(exp=9_999_999_999)),
    "a deep header": base64.urlsafe_b64encode(b"[" * 50_000).decode().rstrip("=") + ".e30.AAAA",
    "no expiry": jwt.encode(claims(exp=None), SECRET),
    "no subject": jwt.encode(claims(sub=None), SECRET),
    "no tenant": jwt.encode(claims(tenant=None), SECRET),
    "an empty tenant": jwt.encode(claims(tenant=""), SECRET),
    "a tenant with a NUL": jwt.encode(claims(tenant="a\x00"), SECRET),
    "no permissions": jwt.encode(claims(permissions=None), SECRET),
    "permissions as text": jwt.encode(claims(permissions="runs:read"), SECRET),
    "permissions of numbers": jwt.encode(claims(permissions=[1]), SECRET),
    "a subject of another type": jwt.encode({**claims(), "sub": 7}, SECRET),
    "a tenant of another type": jwt.encode(claims(tenant=["t"]), SECRET),
    "half a character": jwt.encode(claims(tenant="\ud800"), SECRET),
    "an endless life": jwt.encode(claims(exp=float("inf")), SECRET),
    "an expiry that is no number": jwt.encode(claims(exp=[1]), SECRET),
    "a time of birth that is none": jwt.encode(claims(iat=float("nan")), SECRET),
}


@pytest.mark.parametrize("token", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_token_is_401_before_the_body_is_looked_at(sqlite_api: Served, token: str) -> None:
    headers = httpx.Headers([(b"Authorization", f"Bearer {token}".encode("latin-1"))])
    answer = httpx.put(f"{sqlite_api.url}/api/tasks/x", content=b"{", headers=headers, trust_env=False)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic dTpw", f"Token {SECRET}"])
def test_no_token_is_401(sqlite_api: Served, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    assert httpx.get(f"{sqlite_api.url}{LIST}", headers=headers, trust_env=False).status_code == 401


def routes() -> list[APIRoute]:
    """Every route of the application that is not FastAPI's own."""
    return [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]


def test_every_route_names_its_permission_or_is_public() -> None:
    found = routes()
    assert len(found) >= 9
    for route in found:
        named = [p for part in route.dependant.dependencies if (p := permission_of(part.call))]
        assert (len(named) == 1) != (route.path in PUBLIC_ROUTES), route.path


def test_every_guarded_route_asks_for_exactly_its_permission(sqlite_api: Served) -> None:
    for route in routes():
        if route.path in PUBLIC_ROUTES:
            continue
        (needed,) = [p for part in route.dependant.dependencies if (p := permission_of(part.call))]
        path = route.path.replace("{taskId:path}", "x").replace("{approvalId:path}", "x").replace("{event_id}", "x")
        for method in route.methods or ():
            with sqlite_api.client(permissions=[p for p in EVERYTHING if p != needed]) as client:
                assert client.request(method, path).status_code == 403, route.path
            with sqlite_api.client(permissions=[needed]) as client:
                assert client.request(method, path).status_code not in (401, 403), route.path


def test_another_tenants_event_looks_like_one_that_does_not_exist(api: Served) -> None:
    with api.client() as mine, api.client(tenant="u") as theirs:
        report = {"runId": "r", "status": "failed", "callback": {"url": "https://receiver.example"}}
        event = mine.put("/api/tasks/x", json=report).json()["events"][0]["eventId"]
        missing = event.replace(event[:26], "a" * 26)
        retry = {"kind": "task_callback", "expected_status": "failed"}
        for path, body in ((f"{LIST}/{{}}", None), (f"{LIST}/{{}}/retry", retry)):
            method = "POST" if body else "GET"
            foreign = theirs.request(method, path.format(event), json=body)
            unknown = theirs.request(method, path.format(missing), json=body)
            assert foreign.status_code == 404
            assert foreign.content == unknown.content
        assert theirs.get(LIST).json()["items"] == []
        assert len(mine.get(LIST).json()["items"]) == 1


@pytest.mark.parametrize("kind", ["RS256", "ES256"])
def test_a_public_key_or_a_published_one_verifies(tmp_path: Path, kind: str) -> None:
    key: Any = rsa.generate_private_key(65_537, 2_048) if kind == "RS256" else ec.generate_private_key(ec.SECP256R1())
    pem = tmp_path / "key.pem"
    pem.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    algorithm: Any = jwt.algorithms.RSAAlgorithm if kind == "RS256" else jwt.algorithms.ECAlgorithm
    published = {"keys": [{**json.loads(algorithm.to_jwk(key.public_key())), "kid": "k", "alg": kind, "use": "sig"}]}
    token = jwt.encode(claims(), key, algorithm=kind, headers={"kid": "k"})
    other = "ES256" if kind == "RS256" else "RS256"
    unnamed = jwt.encode(claims(), key, algorithm=kind, headers={"kid": "z"})
    with in_thread(HttpReceiver(answer(body=json.dumps(published).encode()))) as issuer:
        for auth, status_of_unnamed in (({"public_key_file": str(pem)}, 200), ({"jwks_url": issuer.url}, 401)):
            assert _status(tmp_path, auth, token) == 200
            assert _status(tmp_path, auth, confused(pem.read_bytes())) == 401
            assert _status(tmp_path, auth, unsigned({"alg": other, "kid": "k"}, claims(exp=9_999_999_999))) == 401
            assert _status(tmp_path, auth, unnamed) == status_of_unnamed


def test_an_issuer_that_is_away_is_503(tmp_path: Path) -> None:
    token = jwt.encode(claims(), SECRET, headers={"kid": "k"})
    assert _status(tmp_path, {"jwks_url": "http://127.0.0.1:9/keys"}, token) == 503


def _status(directory: Path, auth: dict[str, Any], token: str) -> int:
    url = f"sqlite:///{directory}/a.db"
    stores = Stores.open(url, url, connections=4)
    migrate.upgrade(stores.state)
    try:
        with served(load(state_database_url=url, auth=auth), stores) as one, one.client(token=token) as client:
            return client.get(LIST).status_code
    finally:
        stores.close()


@pytest.mark.parametrize(
    "auth",
    [
        *({}, {"secret": "short"}, {"secret_file": "/nowhere"}, {"public_key_file": "/nowhere"}),
        *({"public_key_file": __file__}, {"jwks_url": "file:///etc/passwd"}),
    ],
)
def test_it_does_not_start_without_a_usable_key(tmp_path: Path, auth: dict[str, Any]) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    stores = Stores.open(url, url, connections=1)
    with pytest.raises(SettingsError):
        create_app(load(state_database_url=url, auth=auth), stores)
    stores.close()
