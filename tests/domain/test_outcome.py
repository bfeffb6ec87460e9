"""An outcome is always fit to be stored, whatever a provider said."""

import pytest

from domain.outcome import MAX_CODE_BYTES, MAX_MESSAGE_ID_BYTES, delivered


@pytest.mark.parametrize("said", ["x" * 5_000, "😀" * 255, "\ud800x", "é" * 200, ""])
def test_what_a_provider_said_is_cut_to_what_the_store_holds(said: str) -> None:
    outcome = delivered(said, message_id=said)
    assert len(outcome.code.encode()) <= MAX_CODE_BYTES
    assert outcome.provider_message_id is not None
    assert len(outcome.provider_message_id.encode()) <= MAX_MESSAGE_ID_BYTES


def test_what_fits_is_left_alone() -> None:
    outcome = delivered("http_200", message_id="é-1")
    assert (outcome.code, outcome.provider_message_id) == ("http_200", "é-1")
