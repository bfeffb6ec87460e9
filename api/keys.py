"""The keys that tokens are verified with; the kind of key decides the algorithm, never the token."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import jwt
from anyio import to_thread
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from settings import AuthSettings, SettingsError

MIN_SECRET_BYTES = 32
MIN_RSA_BITS = 2_048
JWKS_TIMEOUT_S = 5


class KeysUnavailable(Exception):
    """The issuer's keys cannot be fetched."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key with the one algorithm it may be used for."""

    value: Any
    algorithm: str


class KeySource(Protocol):
    """Where the key for a token comes from."""

    async def key_for(self, token: str) -> Key:
        """The key to verify this token with. Raises KeysUnavailable; anything else means a bad token."""


class FixedKey:
    """The one configured key."""

    def __init__(self, key: Key) -> None:
        self._key = key

    async def key_for(self, token: str) -> Key:
        """The same for every token."""
        return self._key


class PublishedKeys:
    """The keys an issuer publishes, fetched when needed and kept; an unknown key id fetches them at most twice a minute."""

    def __init__(self, url: str) -> None:
        self._client = jwt.PyJWKClient(url, timeout=JWKS_TIMEOUT_S)

    async def key_for(self, token: str) -> Key:
        """The key that the token names."""
        return await to_thread.run_sync(self._named_in, token)

    def _named_in(self, token: str) -> Key:
        try:
            return _key(self._client.get_signing_key_from_jwt(token).key)
        except jwt.PyJWKClientConnectionError:
            raise KeysUnavailable from None


def source(settings: AuthSettings) -> KeySource:
    """The configured source. Raises SettingsError when there is none or it cannot be used."""
    if settings.jwks_url is not None:
        return PublishedKeys(settings.jwks_url)
    if settings.public_key_file is not None:
        return FixedKey(_public_key(settings.public_key_file))
    if settings.secret is not None:
        return FixedKey(_secret("auth.secret", settings.secret.get_secret_value().encode()))
    if settings.secret_file is not None:
        return FixedKey(_secret("auth.secret_file", _read(settings.secret_file).rstrip(b"\r\n")))
    raise SettingsError("auth: set one of secret, secret_file, public_key_file, jwks_url; the API never runs open")


def _secret(name: str, secret: bytes) -> Key:
    if len(secret) < MIN_SECRET_BYTES:
        raise SettingsError(f"{name}: must have at least {MIN_SECRET_BYTES} bytes")
    return Key(secret, "HS256")


def _public_key(file: Path) -> Key:
    try:
        return _key(load_pem_public_key(_read(file)))
    except ValueError:
        raise SettingsError(f"{file}: must hold an RSA (2048 bits or more) or P-256 public key in PEM") from None


def _key(value: Any) -> Key:
    if isinstance(value, RSAPublicKey) and value.key_size >= MIN_RSA_BITS:
        return Key(value, "RS256")
    if isinstance(value, EllipticCurvePublicKey) and isinstance(value.curve, SECP256R1):
        return Key(value, "ES256")
    raise ValueError("neither an RSA key of 2048 bits or more nor a P-256 key")


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from None
