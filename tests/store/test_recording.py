"""A fact and its events commit together, once, under exactly the key that was given."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import Connection, func, select, text

from domain.approval import ApprovalStatus, NewApproval
from domain.errors import Conflict, NotFound
from domain.kinds import Kind
from domain.task import TaskStatus
from store import approvals, migrate, tasks
from store import deliveries as deliveries_of_store
from store.database import Database
from store.schema import approvals as approvals_table
from store.schema import deliveries, events, intents, metadata, task_runs
from tests.store.scenes import (
    DELIVERED,
    EMAIL,
    TRANSIENT,
    UNCERTAIN,
    WEBHOOK,
    WECOM,
    claim,
    history,
    load,
    part,
    report,
    send,
    settle,
)


def counts(database: Database) -> dict[str, int]:
    """Rows by table."""

    def read(connection: Connection) -> dict[str, int]:
        tables = [task_runs, approvals_table, events, deliveries, intents]
        return {t.name: connection.scalars(select(func.count()).select_from(t)).one() for t in tables}

    return database.read(read)


def test_a_run_its_events_deliveries_and_intents_are_one_transaction(database: Database) -> None:
    recorded = database.write(partial(tasks.record, report=report(WEBHOOK, EMAIL, WECOM)))
    assert [event.kind for event in recorded.events] == [Kind.TASK_DELIVERY]
    assert counts(database) == {"task_runs": 1, "approvals": 0, "events": 1, "deliveries": 3, "intents": 1}


def test_a_fault_before_the_commit_leaves_nothing(database: Database) -> None:
    def fail(connection: Connection) -> None:
        tasks.record(connection, report())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.write(fail)
    assert set(counts(database).values()) == {0}


def test_a_fault_after_the_commit_is_repaired_by_asking_again(database: Database) -> None:
    first = database.write(partial(tasks.record, report=report()))
    before = counts(database)
    assert database.write(partial(tasks.record, report=report())) == first
    assert counts(database) == before


def test_only_the_move_to_a_terminal_status_causes_events(database: Database) -> None:
    assert database.write(partial(tasks.record, report=report(status="running"))).events == []
    assert counts(database)["events"] == 0
    assert len(database.write(partial(tasks.record, report=report())).events) == 1
    assert len(database.write(partial(tasks.record, report=report())).events) == 1
    assert counts(database)["events"] == 1


@pytest.mark.parametrize("late", ["running", "failed", "cancelled"])
def test_a_run_that_ended_keeps_its_status(database: Database, late: str) -> None:
    database.write(partial(tasks.record, report=report()))
    with pytest.raises(Conflict):
        database.write(partial(tasks.record, report=report(status=late)))


def test_each_run_calls_back_but_the_delivery_keeps_its_identity(database: Database) -> None:
    first = database.write(partial(tasks.record, report=report(run="1")))
    second = database.write(partial(tasks.record, report=report(run="2")))
    assert first.events != second.events
    one = database.write(partial(tasks.record, report=report(EMAIL, run="3")))
    other = database.write(partial(tasks.record, report=report(EMAIL, run="4")))
    assert one.events == other.events
    assert counts(database)["events"] == 3


def test_keys_that_collations_merge_stay_apart(database: Database) -> None:
    keys = ["abc", "ABC", "ábc", "abc ", "😀", "😁"]
    found = {database.write(partial(tasks.record, report=report(task=key))).events[0].event_id for key in keys}
    assert len(found) == len(keys)
    assert counts(database)["task_runs"] == len(keys)


def test_tenants_do_not_meet(database: Database) -> None:
    one = database.write(partial(tasks.record, report=report(tenant="a"))).events[0].event_id
    other = database.write(partial(tasks.record, report=report(tenant="b"))).events[0].event_id
    assert one != other
    assert history(database, one, "a").event.event_id == one


def test_fifty_at_once_are_one(database: Database) -> None:
    with ThreadPoolExecutor(16) as threads:
        answers = list(
            threads.map(lambda _: database.write(partial(tasks.record, report=report(EMAIL, WECOM))), range(50))
        )
    assert all(answer == answers[0] for answer in answers)
    assert counts(database) == {"task_runs": 1, "approvals": 0, "events": 1, "deliveries": 2, "intents": 1}


def test_a_snapshot_comes_back_as_it_was_frozen(database: Database) -> None:
    result = {"zebra": 1, "alpha": [None, True, 1.5], "big": 12345678901234567890, "text": "é😀\u2028</script>"}
    new = report()
    event = type(new)(**{**{f: getattr(new, f) for f in new.__slots__}, "result": result}).events()[0]
    assert type(event.snapshot).from_json(event.snapshot.to_json()) == event.snapshot
    assert list(event.snapshot.data["result"]) == list(result)


def approval(title: str = "Pay?") -> NewApproval:
    return NewApproval("t", "a-1", title, "Brand", EMAIL, "https://console.example/a-1")


def test_an_approval_and_its_prompt_are_one_transaction(database: Database) -> None:
    opened = database.write(partial(approvals.open_approval, new=approval()))
    assert opened.created
    assert opened.event.event_id.endswith("_approval_a-1")
    assert counts(database) == {"task_runs": 0, "approvals": 1, "events": 1, "deliveries": 1, "intents": 1}
    again = database.write(partial(approvals.open_approval, new=approval()))
    assert (again.created, again.event) == (False, opened.event)
    with pytest.raises(Conflict):
        database.write(partial(approvals.open_approval, new=approval("Pay twice?")))


def test_a_decision_skips_a_prompt_that_has_not_left(database: Database) -> None:
    event = database.write(partial(approvals.open_approval, new=approval())).event.event_id
    decide = partial(approvals.decide, tenant="t", approval_id="a-1", decision=ApprovalStatus.APPROVED)
    assert database.write(decide).status is ApprovalStatus.APPROVED
    assert database.write(decide).status is ApprovalStatus.APPROVED
    assert history(database, event).event.status == "skipped"
    assert part(database, event, "email").last_error_code == "approval_decided"
    with pytest.raises(Conflict):
        database.write(partial(approvals.decide, tenant="t", approval_id="a-1", decision=ApprovalStatus.REJECTED))


@pytest.mark.parametrize("outcome", [DELIVERED, UNCERTAIN])
def test_a_decision_does_not_touch_a_prompt_that_has_left(database: Database, outcome: object) -> None:
    event = database.write(partial(approvals.open_approval, new=approval())).event.event_id
    send(database, event, outcome, channel="email")  # type: ignore[arg-type]
    before = history(database, event).event.status
    database.write(partial(approvals.decide, tenant="t", approval_id="a-1", decision=ApprovalStatus.APPROVED))
    assert history(database, event).event.status is before


def test_a_prompt_that_was_being_sent_is_not_tried_again(database: Database) -> None:
    event = database.write(partial(approvals.open_approval, new=approval())).event.event_id
    seen = load(database, part(database, event, "email").delivery_id)
    token = claim(database, seen)
    assert token
    database.write(partial(approvals.decide, tenant="t", approval_id="a-1", decision=ApprovalStatus.APPROVED))
    assert settle(database, seen, token, TRANSIENT).status == "pending"
    assert load(database, seen.delivery_id).unwanted_code == "approval_decided"
    database.write(partial(deliveries_of_store.skip_waiting, event_id=event, code="approval_decided"))
    assert history(database, event).event.status == "skipped"


def test_a_database_of_a_newer_release_lacks_nothing(database: Database) -> None:
    def newer(connection: Connection) -> None:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    database.write(newer)
    assert migrate.missing(database) == []
    migrate.upgrade(database)


def test_an_unknown_approval_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound):
        database.write(partial(approvals.decide, tenant="u", approval_id="a-1", decision=ApprovalStatus.APPROVED))


def test_the_migrations_build_exactly_the_tables_of_the_code(database: Database) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with database.engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
        connection.rollback()
    assert [d for d in differences if "alembic_version" not in str(d)] == []


def test_a_task_status_is_terminal_unless_it_runs() -> None:
    assert [status for status in TaskStatus if not status.terminal] == [TaskStatus.RUNNING]
