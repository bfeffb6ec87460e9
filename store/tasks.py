"""Runs of tasks: one report is one transaction of run, events, deliveries and intents."""

from dataclasses import dataclass

from sqlalchemy import Connection, Row, and_, bindparam, insert, select, update

from domain.errors import Conflict
from domain.event import EventRef
from domain.task import RunReport, TaskStatus
from store import events
from store.clock import db_now
from store.schema import events as events_table
from store.schema import task_runs

_RUN = and_(
    task_runs.c.tenant == bindparam("its_tenant"),
    task_runs.c.task_id == bindparam("its_task"),
    task_runs.c.run_id == bindparam("its_run"),
)
_LOOK = select(
    db_now().label("now"),
    select(task_runs.c.status).where(_RUN).scalar_subquery().label("status"),
    select(events_table.c.event_id)
    .where(events_table.c.event_id == bindparam("event"))
    .scalar_subquery()
    .label("event_id"),
)
_INSERT = insert(task_runs)
_ADVANCE = (
    update(task_runs)
    .where(_RUN, task_runs.c.status == TaskStatus.RUNNING.value)
    .values(status=bindparam("to"), updated_at=bindparam("now"))
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is recorded of a run after a report."""

    status: TaskStatus
    events: list[EventRef]


def record(connection: Connection, report: RunReport) -> Recorded:
    """Records a report about a run.

    The move to a terminal status happens once and creates the events; repeating it changes nothing and answers alike.
    Raises Conflict when the run has ended with another status.
    """
    found = _look(connection, report)
    if found.status is None:
        _insert(connection, found.now, report)
    elif TaskStatus(found.status).terminal:
        return _repeated(connection, report, TaskStatus(found.status))
    elif not _advance(connection, found.now, report):
        return _repeated(connection, report, _look(connection, report).status)
    return Recorded(report.status, _add_events(connection, found, report))


def _look(connection: Connection, report: RunReport) -> Row[tuple[int, str | None, str | None]]:
    """The time, the run's status and its delivery event's id if that exists, in one round trip."""
    run = {"its_tenant": report.tenant, "its_task": report.task_id, "its_run": report.run_id}
    return connection.execute(_LOOK, {**run, "event": report.delivery_event_id}).one()


def _insert(connection: Connection, now: int, report: RunReport) -> None:
    connection.execute(
        _INSERT,
        {
            "tenant": report.tenant,
            "task_id": report.task_id,
            "run_id": report.run_id,
            "status": report.status.value,
            "parent_task_id": report.parent_task_id,
            "created_at": now,
            "updated_at": now,
        },
    )


def _advance(connection: Connection, now: int, report: RunReport) -> bool:
    run = {"its_tenant": report.tenant, "its_task": report.task_id, "its_run": report.run_id}
    return connection.execute(_ADVANCE, {**run, "to": report.status.value, "now": now}).rowcount == 1


def _repeated(connection: Connection, report: RunReport, recorded: str | TaskStatus) -> Recorded:
    if recorded != report.status:
        raise Conflict(f"this run has already ended with status {TaskStatus(recorded).value}")
    identities = [report.callback_id, report.delivery_event_id, report.native_id]
    return Recorded(report.status, events.existing(connection, identities))


def _add_events(
    connection: Connection, found: Row[tuple[int, str | None, str | None]], report: RunReport
) -> list[EventRef]:
    """The delivery of a task keeps its identity over all runs: a later run finds it and does not send it again."""
    return [
        EventRef(new.event_id, new.kind) if new.event_id == found.event_id else events.add(connection, found.now, new)
        for new in report.events()
    ]
