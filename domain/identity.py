"""Event ids: globally unique, the same for the same fact, safe in a header, a URL and a workflow id.

An id is `<digest>_<word>_<identity>`, for example `k7…q_callback_order-17_run-1`. The digest is over tenant, kind and
the exact bytes of every part, so `a_b`+`c` and `a`+`b_c`, `abc` and `ABC`, or two tenants never meet. The tail is for
people: characters that a header or a path would have to escape appear as `~XX` (one per UTF-8 byte); so does the full
stop, which separates the parts of a signed webhook.
"""

import base64
import hashlib

from domain.kinds import IDENTITY_WORD, SOURCE_OF, Kind, Source

MAX_ID_CHARS = 128
"""Longest id a caller may give (contract)."""

MAX_EVENT_ID_BYTES = 512
"""Longest event id; a longer tail is cut, the digest keeps it unique. Temporal allows a workflow id 1,000."""

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_:@+=")
_KIND_OF_WORD = {word: kind for kind, word in IDENTITY_WORD.items()}


def event_id(tenant: str, kind: Kind, *parts: str) -> str:
    """The id of the event of this kind for this identity: equal input, equal id."""
    tail = "_".join(_readable(part) for part in parts)
    return f"{digest(tenant, kind.value, *parts)}_{IDENTITY_WORD[kind]}_{tail}"[:MAX_EVENT_ID_BYTES]


def source_of(event: str) -> Source | None:
    """The source an event id belongs to, or None when it is not an event id of ours."""
    _, _, rest = event.partition("_")
    kind = _KIND_OF_WORD.get(rest.partition("_")[0])
    return SOURCE_OF[kind] if kind else None


def digest(*parts: str) -> str:
    """26 lower-case base32 characters (128 bits) over the parts, each with its length, so no two lists collide."""
    hashed = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        hashed.update(len(raw).to_bytes(4, "big"))
        hashed.update(raw)
    return base64.b32encode(hashed.digest()[:16]).decode().rstrip("=").lower()


def delivery_id(event: str, channel: str, destination: str) -> str:
    """The id of the one delivery of this event on this channel to this destination."""
    return digest(event, channel, destination)


def _readable(part: str) -> str:
    return "".join(chr(byte) if byte in _PLAIN else f"~{byte:02X}" for byte in part.encode())
