"""An approval, its decision, and the one prompt event it causes."""

from dataclasses import dataclass
from enum import StrEnum

from domain.event import NewEvent, Snapshot, Target
from domain.identity import digest, event_id
from domain.kinds import Kind


class ApprovalStatus(StrEnum):
    """Where an approval stands."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class NewApproval:
    """An approval somebody opened, with the prompt that asks for the decision."""

    tenant: str
    approval_id: str
    title: str
    brand: str
    prompt: Target
    url: str | None = None
    """Where the person decides; shown in the text of the prompt."""

    @property
    def fingerprint(self) -> str:
        """Tells a repeat of the same request from another one under the same id; the brand may be a changed default."""
        prompt = self.prompt
        return digest(self.title, prompt.channel, prompt.recipient, prompt.secret_ref or "", self.url or "")

    def event(self) -> NewEvent:
        """The prompt event; its identity is the approval's."""
        text = f"{self.title}\n{self.url}" if self.url else self.title
        data = {"approval_id": self.approval_id, "title": self.title, "url": self.url}
        snapshot = Snapshot(self.brand, f"{self.brand}: {self.title}", text, data)
        identity = event_id(self.tenant, Kind.APPROVAL_PROMPT, self.approval_id)
        return NewEvent(identity, self.tenant, Kind.APPROVAL_PROMPT, snapshot, (self.prompt,))
