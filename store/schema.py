"""The tables, once for every database: SQLAlchemy Core, keys byte-exact, times as microseconds since 1970 in UTC."""

from typing import Any

from sqlalchemy import Column, Index, Integer, MetaData, Table

from store.columns import BigKey, Blob, CallerId, EventId, Key, LongText, Micros, Word

metadata = MetaData()


def _table(name: str, *columns: Column[Any] | Index) -> Table:
    return Table(name, metadata, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin")


task_runs = _table(
    "task_runs",
    Column("tenant", CallerId, primary_key=True),
    Column("task_id", CallerId, primary_key=True),
    Column("run_id", CallerId, primary_key=True),
    Column("status", Word, nullable=False),
    Column("parent_task_id", CallerId),
    Column("created_at", Micros, nullable=False),
    Column("updated_at", Micros, nullable=False),
)

approvals = _table(
    "approvals",
    Column("tenant", CallerId, primary_key=True),
    Column("approval_id", CallerId, primary_key=True),
    Column("status", Word, nullable=False),
    Column("fingerprint", Word, nullable=False),
    Column("created_at", Micros, nullable=False),
    Column("decided_at", Micros),
)

events = _table(
    "events",
    Column("event_id", EventId, primary_key=True),
    Column("tenant", CallerId, nullable=False),
    Column("source", Word, nullable=False),
    Column("kind", Word, nullable=False),
    Column("status", Word, nullable=False),
    Column("snapshot", Blob, nullable=False),
    Column("created_at", Micros, nullable=False),
    Column("updated_at", Micros, nullable=False),
    Column("completed_at", Micros),
    Column("watch_at", Micros, nullable=False),
    Column("unwanted_code", Word),
    Index("events_by_tenant", "tenant", "created_at", "event_id"),
    Index("events_to_watch", "status", "watch_at"),
)

deliveries = _table(
    "deliveries",
    Column("delivery_id", Word, primary_key=True),
    Column("event_id", EventId, nullable=False),
    Column("position", Integer, nullable=False),
    Column("channel", Word, nullable=False),
    Column("provider", Word),
    Column("destination", Blob, nullable=False),
    Column("secret_ref", CallerId),
    Column("status", Word, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("cycle_attempts", Integer, nullable=False),
    Column("total_attempts", Integer, nullable=False),
    Column("next_attempt_at", Micros),
    Column("last_error_code", Word),
    Column("provider_message_id", Key(255)),
    Column("payload_hash", Word),
    Column("lease_token", Word),
    Column("lease_until", Micros),
    Column("created_at", Micros, nullable=False),
    Column("updated_at", Micros, nullable=False),
    Column("delivered_at", Micros),
    Index("deliveries_of_event", "event_id"),
    Index("deliveries_leased", "status", "lease_until"),
)

attempts = _table(
    "attempts",
    Column("attempt_id", BigKey, primary_key=True, autoincrement=True),
    Column("token", Word, nullable=False),
    Column("event_id", EventId, nullable=False),
    Column("delivery_id", Word, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    Column("provider", Word),
    Column("outcome", Word),
    Column("stage", Word),
    Column("code", Word),
    Column("scope", Word),
    Column("http_status", Integer),
    Column("provider_message_id", Key(255)),
    Column("status_after", Word),
    Column("started_at", Micros, nullable=False),
    Column("ended_at", Micros),
    Column("late_outcome", Word),
    Column("late_code", Word),
    Column("late_at", Micros),
    Index("attempts_by_token", "token", unique=True),
    Index("attempts_of_event", "event_id"),
)

intents = _table(
    "intents",
    Column("intent_id", BigKey, primary_key=True, autoincrement=True),
    Column("event_id", EventId, nullable=False),
    Column("action", Word, nullable=False),
    Column("decision_id", Word),
    Column("created_at", Micros, nullable=False),
    Column("available_at", Micros, nullable=False),
    Column("lease_token", Word),
    Column("tries", Integer, nullable=False),
    Index("intents_available", "available_at"),
    Index("intents_of_event", "event_id"),
    Index("intents_leased", "lease_token"),
)

decisions = _table(
    "decisions",
    Column("decision_id", Word, primary_key=True),
    Column("delivery_id", Word, primary_key=True),
    Column("event_id", EventId, nullable=False),
    Column("verdict", Word, nullable=False),
    Column("observed_status", Word, nullable=False),
    Column("new_status", Word, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("operator", Key(1020), nullable=False),
    Column("reason", LongText, nullable=False),
    Column("door", Word, nullable=False),
    Column("decided_at", Micros, nullable=False),
    Index("decisions_of_event", "event_id"),
)
