"""A channel that does what a test tells it: an honest double of the port, with a hand on every step of a send."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from channels.port import Message, Prepared
from domain.errors import NotSendable
from domain.outcome import Outcome, OutcomeKind, Stage, delivered, not_sent

DELIVERED = delivered("http_200", message_id="m-1", http_status=200)
TRANSIENT = Outcome(OutcomeKind.TRANSIENT, "http_500", Stage.ANSWERED, http_status=500)
REJECTED = Outcome(OutcomeKind.REJECTED, "http_404", Stage.ANSWERED, http_status=404)
UNCERTAIN = Outcome(OutcomeKind.UNCERTAIN, "no_answer", Stage.REPLY)

Step = Outcome | Exception | Callable[[], Awaitable[Outcome]]


@dataclass
class ScriptedChannel:
    """Takes one step a send, the last one again and again."""

    native: bool = True
    steps: list[Step] = field(default_factory=lambda: [DELIVERED])
    unready: list[Exception] = field(default_factory=list)
    """Raised one after another while preparing, before anything may be sent."""
    channel: str = "webhook"
    provider: str = "scripted"
    deadline_s: float = 5.0
    sent: list[Message] = field(default_factory=list)
    """One for every time that bytes would have left."""
    closed: bool = False

    async def prepare(self, message: Message) -> Prepared:
        """Ready at once, unless the script says otherwise."""
        if self.unready:
            raise self.unready.pop(0)

        async def send() -> Outcome:
            step = self.steps[min(len(self.sent), len(self.steps) - 1)]
            self.sent.append(message)
            if isinstance(step, Exception):
                raise step
            return step if isinstance(step, Outcome) else await step()

        return Prepared("0" * 64, send)

    async def close(self) -> None:
        """Releases nothing."""
        self.closed = True


@dataclass
class Held:
    """A step that is under way until it is let go."""

    outcome: Outcome = DELIVERED
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> Outcome:
        self.begun.set()
        await self.go.wait()
        return self.outcome


def unready(code: str, *, permanent: bool) -> NotSendable:
    """Why a message cannot be prepared."""
    return NotSendable(not_sent(code, permanent=permanent))
