"""The state table, and an event's status as its deliveries' sum."""

import re
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from domain.lifecycle import FINAL, OPERATOR_MOVES, TRANSITIONS, Move, Status, after, event_status

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_only_an_operator_leaves_a_state_that_ended_or_waits() -> None:
    for (status, move), _ in TRANSITIONS.items():
        waits = status in FINAL or status is Status.UNCERTAIN
        assert waits == (move in OPERATOR_MOVES), (status, move)


def test_completed_and_skipped_are_left_by_nobody() -> None:
    assert not [move for status, move in TRANSITIONS if status in (Status.COMPLETED, Status.SKIPPED)]


def test_every_move_is_in_the_table() -> None:
    assert {move for _, move in TRANSITIONS} == set(Move)


def test_a_move_that_is_not_in_the_table_is_a_programming_error() -> None:
    with pytest.raises(KeyError):
        after(Status.COMPLETED, Move.CLAIM)


@pytest.mark.parametrize(
    ("deliveries", "expected"),
    [
        (["pending"], "pending"),
        (["pending", "pending"], "pending"),
        (["pending", "completed"], "processing"),
        (["processing", "failed"], "processing"),
        (["uncertain", "processing"], "uncertain"),
        (["uncertain", "failed"], "uncertain"),
        (["failed", "completed", "skipped"], "failed"),
        (["completed", "skipped"], "completed"),
        (["skipped"], "skipped"),
    ],
)
def test_an_events_status_follows(deliveries: list[str], expected: str) -> None:
    assert event_status(map(Status, deliveries)) is Status(expected)


def test_an_event_is_final_exactly_when_all_its_deliveries_are() -> None:
    for statuses in combinations_with_replacement(Status, 3):
        assert (event_status(statuses) in FINAL) == all(status in FINAL for status in statuses)


def test_the_picture_in_the_docs_is_this_table() -> None:
    drawn = set(re.findall(r"^\s+(\w+) --> (\w+): (\w+)$", ARCHITECTURE.read_text(), re.MULTILINE))
    assert drawn == {(status.value, target.value, move.value) for (status, move), target in TRANSITIONS.items()}
