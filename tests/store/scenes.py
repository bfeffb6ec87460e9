"""Short ways to bring a database into a state, by the store's own functions."""

import uuid
from functools import partial

from domain.event import Target
from domain.outcome import Outcome, OutcomeKind, Stage, delivered
from domain.task import Callback, RunReport, TaskStatus
from store import deliveries, outbox, tasks
from store.database import Database
from store.deliveries import Claim, Loaded, Result, Verdict
from store.outbox import DeliveryView, History

WEBHOOK = Target("webhook", "https://receiver.example/hook")
EMAIL = Target("email", "ada@example.com")
WECOM = Target("wecom", "ada")

DELIVERED = delivered("http_200", message_id="m-1", http_status=200)
TRANSIENT = Outcome(OutcomeKind.TRANSIENT, "http_500", Stage.ANSWERED, http_status=500)
REJECTED = Outcome(OutcomeKind.REJECTED, "http_404", Stage.ANSWERED, http_status=404)
UNCERTAIN = Outcome(OutcomeKind.UNCERTAIN, "no_answer", Stage.REPLY)


def report(
    *targets: Target, tenant: str = "t", task: str = "task", run: str = "run", status: str = "succeeded"
) -> RunReport:
    """A report whose end delivers to the targets; without any, it calls back a webhook."""
    callback = None if targets else Callback("https://receiver.example/hook", "main")
    return RunReport(
        tenant, task, run, TaskStatus(status), "Brand", result={"n": 1}, callback=callback, delivery=targets
    )


def record(database: Database, *targets: Target, task: str = "task") -> str:
    """Records an event with one delivery a target; its id."""
    return database.write(partial(tasks.record, report=report(*targets, task=task))).events[0].event_id


def history(database: Database, event_id: str, tenant: str = "t") -> History:
    """The event with all that happened to it."""
    found = database.read(partial(outbox.history, tenant=tenant, event_id=event_id))
    assert found is not None
    return found


def part(database: Database, event_id: str, channel: str = "webhook") -> DeliveryView:
    """The event's delivery on one channel."""
    return next(d for d in history(database, event_id).event.deliveries if d.channel == channel)


def load(database: Database, delivery_id: str) -> Loaded:
    """A delivery as its sender reads it."""
    seen = database.read(partial(deliveries.load, delivery_id=delivery_id))
    assert seen is not None
    return seen


def claim(database: Database, seen: Loaded, *, token: str | None = None, lease_s: float = 30.0) -> str | None:
    """Claims what was seen; the token, or None when somebody was faster."""
    token = token or uuid.uuid4().hex
    wish = Claim(
        seen.event_id, seen.delivery_id, seen.generation, seen.total_attempts + 1, token, lease_s, "provider", "hash"
    )
    return token if database.write(partial(deliveries.claim, wish=wish)) else None


def settle(
    database: Database, seen: Loaded, token: str, outcome: Outcome, *, native: bool = True, delay_s: float = 0.0
) -> Verdict:
    """Settles an attempt."""
    result = Result(seen.event_id, seen.delivery_id, token, outcome, native, 6, delay_s)
    return database.write(partial(deliveries.settle, result=result))


def send(database: Database, event_id: str, outcome: Outcome, *, channel: str = "webhook", native: bool = True) -> None:
    """One whole attempt on a channel."""
    seen = load(database, part(database, event_id, channel).delivery_id)
    token = claim(database, seen)
    assert token is not None
    settle(database, seen, token, outcome, native=native)
