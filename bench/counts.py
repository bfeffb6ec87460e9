"""Exact counts: database transactions by purpose, and what an event costs in Temporal's history and bill."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Engine, event
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory


class Purpose(StrEnum):
    """What a transaction was for; one that several pieces of work share counts once, for the first of these."""

    ACCEPT = "accept"
    CLAIM = "claim"
    SETTLE = "settle"
    SWEEP = "sweep"
    RELAY = "relay"
    POLL = "poll"
    READ = "read"


_MARKS = (
    ("INSERT INTO events", Purpose.ACCEPT),
    ("INSERT INTO attempts", Purpose.CLAIM),
    ("UPDATE attempts", Purpose.SETTLE),
    ("watch_at <=", Purpose.SWEEP),
    ("UPDATE intents", Purpose.RELAY),
    ("DELETE FROM intents", Purpose.RELAY),
    ("FROM intents", Purpose.POLL),  # it found nothing to carry
)


def purpose(statements: list[str]) -> Purpose:
    """What a transaction of these statements was for."""
    text = "\n".join(statements)
    return next((found for mark, found in _MARKS if mark in text), Purpose.READ)


@dataclass(slots=True)
class Transactions:
    """Transactions and their statements so far, by purpose; BEGIN, COMMIT and ROLLBACK are no statements."""

    count: Counter[Purpose] = field(default_factory=Counter)
    statements: Counter[Purpose] = field(default_factory=Counter)

    def since(self, before: "Transactions") -> "Transactions":
        """What has been added to an earlier copy."""
        return Transactions(self.count - before.count, self.statements - before.statements)


class Census:
    """Counts the transactions of one engine from any thread."""

    def __init__(self) -> None:
        self._counted = Transactions()
        self._open = threading.local()
        self._lock = threading.Lock()

    @contextmanager
    def of(self, engine: Engine) -> Iterator[None]:
        """Counts for as long as the block runs."""
        listeners = (("before_cursor_execute", self._statement), ("commit", self._end), ("rollback", self._end))
        for name, listener in listeners:
            event.listen(engine, name, listener)
        try:
            yield
        finally:
            for name, listener in listeners:
                event.remove(engine, name, listener)

    def now(self) -> Transactions:
        """A copy of what was counted so far."""
        with self._lock:
            return Transactions(self._counted.count.copy(), self._counted.statements.copy())

    def _statement(
        self, connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool
    ) -> None:
        if not statement.startswith("BEGIN"):
            self._open.__dict__.setdefault("statements", []).append(statement)

    def _end(self, connection: Connection) -> None:
        """A transaction runs on one thread from beginning to end."""
        statements = self._open.__dict__.pop("statements", [])
        if statements:
            kind = purpose(statements)
            with self._lock:
                self._counted.count[kind] += 1
                self._counted.statements[kind] += len(statements)


_SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
_STARTED = EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
_BILLED_ONCE = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
        _SCHEDULED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
        EventType.EVENT_TYPE_TIMER_STARTED,
    }
)


def billable_actions(history: WorkflowHistory) -> int:
    """What Temporal Cloud would bill: start, activities and their retries, signals, search attributes, timers."""
    once = sum(item.event_type in _BILLED_ONCE for item in history.events)
    retries = sum(
        item.activity_task_started_event_attributes.attempt - 1
        for item in history.events
        if item.event_type == _STARTED
    )
    return once + retries
