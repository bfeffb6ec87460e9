"""A report about one run of a task, and the events its end causes."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from domain.channels import ChannelName
from domain.event import NewEvent, Snapshot, Target
from domain.identity import event_id
from domain.kinds import Kind


class TaskStatus(StrEnum):
    """What a business system says of a run."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether the run has ended; only that causes events."""
        return self is not TaskStatus.RUNNING


@dataclass(frozen=True, slots=True)
class Callback:
    """Where a task's end is reported to a machine."""

    url: str
    secret_ref: str | None


@dataclass(frozen=True, slots=True)
class RunReport:
    """One report: this run of this task has this status."""

    tenant: str
    task_id: str
    run_id: str
    status: TaskStatus
    brand: str
    parent_task_id: str | None = None
    result: Any = None
    callback: Callback | None = None
    delivery: tuple[Target, ...] = ()
    native: Target | None = None

    @property
    def callback_id(self) -> str:
        """Each completed run has its own callback event."""
        return event_id(self.tenant, Kind.TASK_CALLBACK, self.task_id, self.run_id)

    @property
    def delivery_event_id(self) -> str:
        """The delivery of a task's result keeps its identity over all runs."""
        return event_id(self.tenant, Kind.TASK_DELIVERY, self.task_id)

    @property
    def native_id(self) -> str:
        """Native returns are told apart by the run that ended."""
        return event_id(self.tenant, Kind.TASK_NATIVE, self.task_id, self.run_id)

    def events(self) -> list[NewEvent]:
        """The events that the end of this run causes; empty while it runs."""
        if not self.status.terminal:
            return []
        events = []
        if self.callback:
            target = Target(ChannelName.WEBHOOK, self.callback.url, self.callback.secret_ref)
            events.append(self._event(Kind.TASK_CALLBACK, self.callback_id, (target,)))
        if self.delivery:
            events.append(self._event(Kind.TASK_DELIVERY, self.delivery_event_id, self.delivery))
        if self.native:
            events.append(self._event(Kind.TASK_NATIVE, self.native_id, (self.native,)))
        return events

    def _event(self, kind: Kind, identity: str, targets: tuple[Target, ...]) -> NewEvent:
        return NewEvent(identity, self.tenant, kind, self._snapshot(), targets)

    def _snapshot(self) -> Snapshot:
        data = {"task_id": self.task_id, "run_id": self.run_id, "status": self.status.value, "result": self.result}
        if self.parent_task_id is not None:
            data["parent_task_id"] = self.parent_task_id
        title = f"{self.brand}: task {self.task_id} {self.status.value}"
        text = self.result if isinstance(self.result, str) else title
        return Snapshot(self.brand, title, text, data)
