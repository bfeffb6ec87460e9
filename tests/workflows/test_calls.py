"""Names and shapes that histories and callers remember: changing one breaks every workflow that is open."""

from dataclasses import fields

import pytest

from workflows import calls
from workflows.calls import (
    DecideInput,
    DecideResult,
    DeliverInput,
    DeliverResult,
    DeliveryEnd,
    DeliveryRef,
    EventInput,
)


def test_names_are_what_histories_remember() -> None:
    assert (calls.WORKFLOW, calls.DELIVER, calls.DECIDE, calls.RESOLVE) == (
        "Notification",
        "deliver",
        "decide",
        "resolve",
    )
    assert [key.name for key in (calls.TENANT, calls.KIND, calls.STATE)] == [
        "TidingsTenant",
        "TidingsKind",
        "TidingsState",
    ]
    assert (calls.STATE_OPEN, calls.STATE_UNCERTAIN) == ("open", "uncertain")


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        (DeliveryRef, ["delivery_id", "channel", "generation"]),
        (DeliveryEnd, ["delivery_id", "channel", "status"]),
        (EventInput, ["event_id", "deliveries", "search_attributes"]),
        (DeliverInput, ["event_id", "delivery_id", "generation"]),
        (DeliverResult, ["status", "code"]),
        (DecideInput, ["event_id", "decision_id", "payload"]),
        (DecideResult, ["accepted", "reason", "to_send", "settled"]),
    ],
)
def test_shapes_are_what_histories_remember(shape: type, names: list[str]) -> None:
    assert [field.name for field in fields(shape)] == names


def test_a_lost_sender_is_never_repeated_by_temporal() -> None:
    assert calls.DELIVER_RETRY.non_retryable_error_types == [
        "TemporalTimeout:StartToClose",
        "TemporalTimeout:Heartbeat",
        "WorkerShutdown",
    ]
    assert calls.DELIVER_RETRY.maximum_attempts == 0
