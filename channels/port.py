"""What the sender needs of a channel: prepare without side effects, then send once and say what happened."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from domain.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Message:
    """One delivery's content, frozen at acceptance; every retry is given an equal one."""

    event_id: str
    tenant: str
    delivery_id: str
    kind: str
    occurred_at: str
    """RFC 3339, UTC, with `Z`."""
    destination: str
    """Address, URL or account at the provider. Personal data: never logged, never put in an error."""
    secret_ref: str | None
    """Name of the signing secret; the secret itself is read at send time."""
    brand: str
    """The sender's name as frozen in the event."""
    title: str
    text: str
    """Plain text for people."""
    data: dict[str, Any]
    """What a machine receiver gets."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message ready to leave: everything that can fail without doubt has already happened."""

    payload_hash: str
    """SHA-256 (hex) of what a retry must repeat byte for byte."""
    send: Callable[[], Awaitable[Outcome]]
    """Sends exactly once, within the channel's `deadline_s`. Raises only on cancellation; never retries by itself."""


class Channel(Protocol):
    """One provider on one channel."""

    @property
    def channel(self) -> str:
        """The channel's name in the contract: `webhook`, `email`, `wecom`, …"""

    @property
    def provider(self) -> str:
        """Who carries it: `http`, `smtp`, `wecom`, …"""

    @property
    def native(self) -> bool:
        """True when a repeat reaches a person twice, so nothing uncertain is ever repeated by itself."""

    @property
    def deadline_s(self) -> float:
        """Longest time one `send` may take, in seconds, whatever the provider does."""

    async def prepare(self, message: Message) -> Prepared:
        """Renders, signs, fetches tokens. Raises `NotSendable` with an outcome that is certain not to have left us."""

    async def close(self) -> None:
        """Releases connections."""
