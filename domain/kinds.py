"""The kinds of event, where each one's truth lives, and the word its identity begins with."""

from enum import StrEnum


class Source(StrEnum):
    """Which truth an event belongs to; also the fixed label of its metrics."""

    JOBS = "jobs"
    APPROVALS = "approvals"
    NOTIFICATIONS = "notifications"


class Kind(StrEnum):
    """What an event tells its receiver."""

    TASK_CALLBACK = "task_callback"
    TASK_DELIVERY = "task_delivery"
    TASK_NATIVE = "task_native"
    APPROVAL_PROMPT = "approval_prompt"
    USER_NOTIFICATION = "user_notification"


SOURCE_OF: dict[Kind, Source] = {
    Kind.TASK_CALLBACK: Source.JOBS,
    Kind.TASK_DELIVERY: Source.JOBS,
    Kind.TASK_NATIVE: Source.JOBS,
    Kind.APPROVAL_PROMPT: Source.APPROVALS,
    Kind.USER_NOTIFICATION: Source.NOTIFICATIONS,
}

IDENTITY_WORD: dict[Kind, str] = {
    Kind.TASK_CALLBACK: "callback",
    Kind.TASK_DELIVERY: "deliver",
    Kind.TASK_NATIVE: "native",
    Kind.APPROVAL_PROMPT: "approval",
    Kind.USER_NOTIFICATION: "notification",
}
