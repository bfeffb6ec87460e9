"""What an outcome does to its delivery; above all: nothing native that may have left is ever repeated by itself."""

import pytest

from domain.lifecycle import Move
from domain.outcome import Outcome, OutcomeKind, Stage
from domain.sending import move_after_lost_lease, move_for


@pytest.mark.parametrize(
    ("kind", "native", "exhausted", "expected"),
    [
        ("delivered", True, True, Move.DELIVER),
        ("delivered", False, False, Move.DELIVER),
        ("rejected", True, False, Move.REJECT),
        ("rejected", False, False, Move.REJECT),
        ("transient", True, False, Move.RETRY),
        ("transient", False, False, Move.RETRY),
        ("transient", True, True, Move.REJECT),
        ("transient", False, True, Move.REJECT),
        ("uncertain", True, False, Move.DOUBT),
        ("uncertain", True, True, Move.DOUBT),
        ("uncertain", False, False, Move.RETRY),
        ("uncertain", False, True, Move.REJECT),
    ],
)
def test_after_an_outcome(kind: str, native: bool, exhausted: bool, expected: Move) -> None:
    outcome = Outcome(OutcomeKind(kind), "code", Stage.BODY)
    assert move_for(outcome, native=native, exhausted=exhausted) is expected


@pytest.mark.parametrize(
    ("native", "exhausted", "expected"),
    [
        (True, False, Move.DOUBT),
        (True, True, Move.DOUBT),
        (False, False, Move.RELEASE),
        (False, True, Move.REJECT),
    ],
)
def test_after_a_lost_lease(native: bool, exhausted: bool, expected: Move) -> None:
    assert move_after_lost_lease(native=native, exhausted=exhausted) is expected
