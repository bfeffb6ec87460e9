"""Standard Webhooks signatures (HMAC-SHA256)."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable

_PREFIX = "whsec_"


class MalformedSecret(ValueError):
    """A secret begins with `whsec_` and does not go on in base64."""


def keys(secrets: Iterable[str]) -> tuple[bytes, ...]:
    """The key bytes of each live secret: `whsec_` and base64, or the text itself."""
    return tuple(map(_key, secrets))


def signature(keys: Iterable[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` header: one signature per key, so that a receiver may hold the old or the new one."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join("v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)


def _key(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise MalformedSecret from None
    if not key:
        raise MalformedSecret
    return key
