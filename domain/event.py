"""An event before it is stored: identity, frozen snapshot and the deliveries it asks for."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from domain.kinds import SOURCE_OF, Kind, Source


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the event says, frozen at acceptance; every retry renders from an equal one."""

    brand: str
    title: str
    text: str
    data: dict[str, Any]

    def to_json(self) -> bytes:
        """The bytes to store; key order is kept, so the same snapshot always renders the same."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, raw: bytes) -> "Snapshot":
        """The snapshot that `to_json` wrote."""
        return cls(**json.loads(raw))


@dataclass(frozen=True, slots=True)
class Target:
    """One channel and the address, URL or account on it. The recipient is personal data."""

    channel: str
    recipient: str
    secret_ref: str | None = None
    """Name of the signing secret, for webhooks."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be recorded with its deliveries and its start intent."""

    event_id: str
    tenant: str
    kind: Kind
    snapshot: Snapshot
    targets: tuple[Target, ...]

    @property
    def source(self) -> Source:
        """Where its truth lives."""
        return SOURCE_OF[self.kind]


@dataclass(frozen=True, slots=True)
class EventRef:
    """An event's id and kind, as answered to whoever reported the fact."""

    event_id: str
    kind: Kind
