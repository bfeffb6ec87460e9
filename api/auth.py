"""Who calls: a bearer token becomes an actor, and every route names the permission it asks for."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from pydantic import TypeAdapter, ValidationError

from api.errors import Rejected
from api.fields import CallerId
from api.issuer import IssuerKeys
from settings import AuthSettings, SettingsError

PERMISSIONS = (
    "tasks:write",
    "approvals:write",
    "notifications:write",
    "notifications:self",
    "runs:read",
    "runs:write",
)
MIN_SECRET_BYTES = 32
"""Shortest HS256 secret, as long as the digest (RFC 7518 3.2)."""

_bearer = HTTPBearer(auto_error=False, description="A JWT with the claims `sub`, `tenant`, `permissions`, `exp`.")
_caller_id = TypeAdapter(CallerId)


@dataclass(frozen=True, slots=True)
class Actor:
    """Whoever holds the token. The tenant comes from nowhere else."""

    subject: str
    tenant: str
    permissions: frozenset[str]


class Verifier:
    """Turns a token into an actor. The algorithm follows from the kind of key, never from the token."""

    def __init__(self, settings: AuthSettings) -> None:
        """Reads the key. Raises SettingsError when there is none, or one too weak to use."""
        self._settings = settings
        self._algorithms = ["RS256", "ES256"] if settings.public_key_file or settings.jwks_url else ["HS256"]
        self._issuer = IssuerKeys(settings.jwks_url) if settings.jwks_url else None
        if self._issuer is None:
            self._key: Any = _public_key(settings) if settings.public_key_file else signing_secret(settings)

    async def actor(self, token: str) -> Actor:
        """The token's actor. Raises Rejected with 401, or 503 while the issuer's keys cannot be fetched."""
        try:
            claims = jwt.decode(
                token,
                await self._issuer.key_of(token) if self._issuer else self._key,
                algorithms=self._algorithms,
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=self._settings.leeway_s,
                options={"require": ["exp", "sub"], "verify_aud": self._settings.audience is not None},
            )
            return _actor(claims)
        except (jwt.PyJWTError, ValidationError, ValueError, TypeError, RecursionError):
            raise _unauthenticated() from None


async def authorise(request: Request, permission: str) -> Actor:
    """The request's actor. Raises Rejected: 401 without a valid token, 403 without the permission."""
    actor: Actor | None = getattr(request.state, "actor", None)
    if actor is None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise _unauthenticated()
        verifier: Verifier = request.app.state.verifier
        actor = request.state.actor = await verifier.actor(token.strip())
    if permission not in actor.permissions:
        raise Rejected(403, "forbidden", f"This needs the permission {permission}.")
    return actor


def require(permission: str) -> Any:
    """The dependency of a route that only actors with this permission may call."""
    if permission not in PERMISSIONS:
        raise ValueError(permission)

    async def actor(request: Request, shown_in_openapi: Annotated[object, Depends(_bearer)]) -> Actor:
        return await authorise(request, permission)

    actor.permission = permission  # type: ignore[attr-defined]
    return Depends(actor)


def permission_of(dependency: Callable[..., Any] | None) -> str | None:
    """The permission that a dependency made by `require` asks for; None for any other."""
    return getattr(dependency, "permission", None)


def mint(secret: str, *, tenant: str, subject: str, permissions: list[str], lifetime: timedelta) -> str:
    """A token signed with an HS256 secret."""
    now = datetime.now(UTC)
    claims = {"sub": subject, "tenant": tenant, "permissions": permissions, "iat": now, "exp": now + lifetime}
    return jwt.encode(claims, secret, algorithm="HS256")


def signing_secret(settings: AuthSettings) -> str:
    """The HS256 secret. Raises SettingsError when none is configured, or one too short."""
    if settings.secret is not None:
        secret = settings.secret.get_secret_value()
    elif settings.secret_file is not None:
        try:
            secret = settings.secret_file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            raise SettingsError(f"auth.secret_file: cannot read {settings.secret_file}") from None
    else:
        raise SettingsError("auth: no key is configured (secret, secret_file, public_key_file or jwks_url)")
    if len(secret.encode()) < MIN_SECRET_BYTES:
        raise SettingsError(f"auth: the secret must have at least {MIN_SECRET_BYTES} bytes")
    return secret


def _public_key(settings: AuthSettings) -> PublicKeyTypes:
    assert settings.public_key_file is not None
    try:
        return load_pem_public_key(settings.public_key_file.read_bytes())
    except OSError:
        raise SettingsError(f"auth.public_key_file: cannot read {settings.public_key_file}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise SettingsError(f"auth.public_key_file: no PEM public key in {settings.public_key_file}") from None


def _actor(claims: dict[str, Any]) -> Actor:
    permissions = claims.get("permissions")
    if not isinstance(permissions, list) or not all(isinstance(name, str) for name in permissions):
        raise ValueError("permissions")
    return Actor(
        _caller_id.validate_python(claims["sub"], strict=True),
        _caller_id.validate_python(claims.get("tenant"), strict=True),
        frozenset(permissions),
    )


def _unauthenticated() -> Rejected:
    return Rejected(401, "unauthenticated", "A valid bearer token is required.", {"WWW-Authenticate": "Bearer"})
