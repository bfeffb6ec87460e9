"""Bearer tokens: who asks, for which tenant, with which permissions; and minting tokens for our own secret."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jwt

from api import keys
from api.fields import is_id
from api.problems import auth_unavailable, unauthenticated
from settings import AuthSettings

MAX_TOKEN_CHARS = 16_384
_SCHEME = "bearer"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks. The tenant comes from here and from nowhere else."""

    subject: str
    tenant: str
    permissions: frozenset[str]


class Authenticator:
    """Turns an `Authorization` header into an actor."""

    def __init__(self, settings: AuthSettings) -> None:
        """Raises SettingsError when no usable key is configured."""
        self._keys = keys.source(settings)
        self._checks: dict[str, Any] = {
            "audience": settings.audience,
            "issuer": settings.issuer,
            "leeway": settings.leeway_s,
            "options": {"require": ["exp", "sub"], "verify_aud": settings.audience is not None},
        }

    async def actor(self, header: str | None) -> Actor:
        """The actor a header proves. Raises a Refusal."""
        if header is None:
            raise unauthenticated(presented=False)
        scheme, _, token = header.partition(" ")
        if scheme.lower() != _SCHEME or len(token) > MAX_TOKEN_CHARS:
            raise unauthenticated(presented=True)
        try:
            return _actor(await self._claims(token.strip()))
        except keys.KeysUnavailable:
            raise auth_unavailable() from None
        except Exception:  # whatever a forged token provokes in a parser makes it a bad token, not a fault of ours
            raise unauthenticated(presented=True) from None

    async def _claims(self, token: str) -> dict[str, Any]:
        key = await self._keys.key_for(token)
        return jwt.decode(token, key.value, algorithms=[key.algorithm], **self._checks)


def mint(secret: str, tenant: str, subject: str, permissions: Iterable[str], ttl_s: float) -> str:
    """A signed token that is valid for `ttl_s` seconds."""
    now = int(time.time())
    claims = {"sub": subject, "tenant": tenant, "permissions": list(permissions), "iat": now, "exp": now + int(ttl_s)}
    return jwt.encode(claims, secret, algorithm="HS256")


def _actor(claims: dict[str, Any]) -> Actor:
    return Actor(_id(claims["sub"]), _id(claims["tenant"]), frozenset(_words(claims["permissions"])))


def _id(value: object) -> str:
    if not isinstance(value, str) or not is_id(value):
        raise ValueError("not an id")
    return value


def _words(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError("not a list of words")
    return value
