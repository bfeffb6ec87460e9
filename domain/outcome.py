"""What one send told us, as a value that says who acts next."""

from dataclasses import dataclass
from enum import StrEnum


class OutcomeKind(StrEnum):
    """The four things an attempt can mean."""

    DELIVERED = "delivered"
    """The provider took responsibility. It does not mean that a person read it."""
    REJECTED = "rejected"
    """Not taken, and asking again would change nothing."""
    TRANSIENT = "transient"
    """Certainly not taken; asking again later may work."""
    UNCERTAIN = "uncertain"
    """It may have been taken and nothing proves it either way."""


class Stage(StrEnum):
    """How far an attempt got. Everything before `BODY` is certain not to have reached anybody."""

    PREPARE = "prepare"
    CONNECT = "connect"
    HEADERS = "headers"
    """Talking to the provider, before the first byte of the message itself."""
    BODY = "body"
    """Message bytes were being written: the provider may hold all of them."""
    REPLY = "reply"
    """The message was written; the answer is missing or incomplete."""
    ANSWERED = "answered"
    """The provider's answer was read."""


class Scope(StrEnum):
    """Whose fault a refusal is, so that an operator mends the right thing."""

    MESSAGE = "message"
    RECIPIENT = "recipient"
    SENDER = "sender"
    CREDENTIAL = "credential"
    ACCOUNT = "account"
    CONFIG = "config"


MAX_CODE_BYTES = 64
MAX_MESSAGE_ID_BYTES = 255


def _fitting(text: str, limit: int) -> str:
    """The text cut to so many bytes of UTF-8, with a mark for what is not text at all."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One attempt's result. Holds no address, no body and no secret, so it may be stored, logged and shown."""

    kind: OutcomeKind
    code: str
    """Stable lower-case code, `[a-z0-9_.-]`, at most 64 characters: our own word or the provider's number."""
    stage: Stage
    scope: Scope = Scope.MESSAGE
    retry_after_s: float | None = None
    """Seconds the provider asked us to wait, already capped; None when it did not say."""
    provider_message_id: str | None = None
    http_status: int | None = None

    def __post_init__(self) -> None:
        """Makes what a provider said fit to be stored: an outcome that cannot be recorded would be lost."""
        object.__setattr__(self, "code", _fitting(self.code, MAX_CODE_BYTES))
        if self.provider_message_id is not None:
            object.__setattr__(self, "provider_message_id", _fitting(self.provider_message_id, MAX_MESSAGE_ID_BYTES))


def delivered(code: str, *, message_id: str | None = None, http_status: int | None = None) -> Outcome:
    """The provider's own acknowledgement was read."""
    return Outcome(OutcomeKind.DELIVERED, code, Stage.ANSWERED, provider_message_id=message_id, http_status=http_status)


def not_sent(code: str, *, scope: Scope = Scope.MESSAGE, permanent: bool = False) -> Outcome:
    """Failed while preparing: certain that no byte left us."""
    kind = OutcomeKind.REJECTED if permanent else OutcomeKind.TRANSIENT
    return Outcome(kind, code, Stage.PREPARE, scope)
