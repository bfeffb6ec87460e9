"""The first tables: runs, approvals, events, deliveries, attempts, intents, decisions."""

import sqlalchemy as sa
from alembic import op

from store.columns import BigKey, Blob, Key, LongText, Micros

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Only adds tables."""
    op.create_table(
        "approvals",
        sa.Column("tenant", Key(length=512), nullable=False),
        sa.Column("approval_id", Key(length=512), nullable=False),
        sa.Column("status", Key(length=64), nullable=False),
        sa.Column("fingerprint", Key(length=64), nullable=False),
        sa.Column("created_at", Micros, nullable=False),
        sa.Column("decided_at", Micros, nullable=True),
        sa.PrimaryKeyConstraint("tenant", "approval_id"),
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "attempts",
        sa.Column("attempt_id", BigKey, autoincrement=True, nullable=False),
        sa.Column("token", Key(length=64), nullable=False),
        sa.Column("event_id", Key(length=512), nullable=False),
        sa.Column("delivery_id", Key(length=64), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("provider", Key(length=64), nullable=True),
        sa.Column("outcome", Key(length=64), nullable=True),
        sa.Column("stage", Key(length=64), nullable=True),
        sa.Column("code", Key(length=64), nullable=True),
        sa.Column("scope", Key(length=64), nullable=True),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("provider_message_id", Key(length=255), nullable=True),
        sa.Column("status_after", Key(length=64), nullable=True),
        sa.Column("started_at", Micros, nullable=False),
        sa.Column("ended_at", Micros, nullable=True),
        sa.Column("late_outcome", Key(length=64), nullable=True),
        sa.Column("late_code", Key(length=64), nullable=True),
        sa.Column("late_at", Micros, nullable=True),
        sa.PrimaryKeyConstraint("attempt_id"),
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mysql_engine="InnoDB",
    )
    op.create_index("attempts_by_token", "attempts", ["token"], unique=True)
    op.create_index("attempts_of_event", "attempts", ["event_id"], unique=False)
    op.create_table(
        "decisions",
        sa.Column("decision_id", Key(length=64), nullable=False),
        sa.Column("delivery_id", Key(length=64), nullable=False),
        sa.Column("event_id", Key(length=512), nullable=False),
        sa.Column("verdict", Key(length=64), nullable=False),
        sa.Column("observed_status", Key(length=64), nullable=False),
        sa.Column("new_status", Key(length=64), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("operator", Key(length=1020), nullable=False),
        sa.Column("reason", LongText, nullable=False),
        sa.Column("door", Key(length=64), nullable=False),
        sa.Column("decided_at", Micros, nullable=False),
        sa.PrimaryKeyConstraint("decision_id", "delivery_id"),
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mysql_engine="InnoDB",
    )
    op.create_index("decisions_of_event", "decisions", ["event_id"], unique=False)
    op.create_table(
        "deliveries",
        sa.Column("delivery_id", Key(length=64), nullable=False),
        sa.Column("event_id", Key(length=512), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("channel", Key(length=64), nullable=False),
        sa.Column("provider", Key(length=64), nullable=True),
        sa.Column("destination", Blob, nullable=False),
        sa.Column("secret_ref", Key(length=512), nullable=True),
        sa.Column("status", Key(length=64), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("cycle_attempts", sa.Integer(), nullable=False),
        sa.Column("total_attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", Micros, nullable=True),
        sa.Column("last_error_code", Key(length=64), nullable=True),
        sa.Column("provider_message_id", Key(length=255), nullable=True),
        sa.Column("payload_hash", Key(length=64), nullable=True),
        sa.Column("lease_token", Key(length=64), nullable=True),
        sa.Column("lease_until", Micros, nullable=True),
        sa.Column("created_at", Micros, nullable=False),
        sa.Column("updated_at", Micros, nullable=False),
        sa.Column("delivered_at", Micros, nullable=True),
        sa.PrimaryKeyConstraint("delivery_id"),
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mysql_engine="InnoDB",
    )
    op.create_index("deliveries_leased", "deliveries", ["status", "lease_until"], unique=False)
    op.create_index("deliveries_of_event", "deliveries", ["event_id"], unique=False)
    op.create_table(
        "events",
        sa.Column("event_id", Key(length=512), nullable=False),
        sa.Column("tenant", Key(length=512), nullable=False),
        sa.Column("source", Key(length=64), nullable=False),
        sa.Column("kind", Key(length=64), nullable=False),
        sa.Column("status", Key(length=64), nullable=False),
        sa.Column("snapshot", Blob, nullable=False),
        sa.Column("created_at", Micros, nullable=False),
        sa.Column("updated_at", Micros, nullable=False),
        sa.Column("completed_at", Micros, nullable=True),
        sa.Column("watch_at", Micros, nullable=False),
        sa.Column("unwanted_code", Key(length=64), nullable=True),
        sa.PrimaryKeyConstraint("event_id"),
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mysql_engine="InnoDB",
    )
    op.create_index("events_by_tenant", "events", ["tenant", "created_at", "event_id"], unique=False)
    op.create_index("events_to_watch", "events", ["status", "watch_at"], unique=False)
    op.create_table(
        "intents",
        sa.Column("intent_id", BigKey, autoincrement=True, nullable=False),
        sa.Column("event_id", Key(length=512), nullable=False),
        sa.Column("action", Key(length=64), nullable=False),
        sa.Column("decision_id", Key(length=64), nullable=True),
        sa.Column("created_at", Micros, nullable=False),
        sa.Column("available_at", Micros, nullable=False),
        sa.Column("lease_token", Key(length=64), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("intent_id"),
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mysql_engine="InnoDB",
    )
    op.create_index("intents_available", "intents", ["available_at"], unique=False)
    op.create_index("intents_leased", "intents", ["lease_token"], unique=False)
    op.create_index("intents_of_event", "intents", ["event_id"], unique=False)
    op.create_table(
        "task_runs",
        sa.Column("tenant", Key(length=512), nullable=False),
        sa.Column("task_id", Key(length=512), nullable=False),
        sa.Column("run_id", Key(length=512), nullable=False),
        sa.Column("status", Key(length=64), nullable=False),
        sa.Column("parent_task_id", Key(length=512), nullable=True),
        sa.Column("created_at", Micros, nullable=False),
        sa.Column("updated_at", Micros, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "task_id", "run_id"),
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mysql_engine="InnoDB",
    )
