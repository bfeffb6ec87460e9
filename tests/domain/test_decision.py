"""The rules of an operator's decision, the same for every door."""

import pytest

from domain.decision import Candidate, Decision, Door, Verdict, chosen
from domain.errors import DuplicateRiskNotAccepted, InvalidInput, StatusChanged
from domain.lifecycle import Status, event_status


def decide(
    *statuses: str,
    expected: str = "uncertain",
    verdict: Verdict = Verdict.RESEND,
    channel: str | None = None,
    allow: bool = True,
) -> list[str]:
    found = [Candidate(f"d{n}", f"channel{n}", Status(status)) for n, status in enumerate(statuses)]
    order = Decision(
        "id", "event", verdict, Status(expected), "operator", "reason", Door.API, channel, allow_uncertain=allow
    )
    return chosen(order, event_status(d.status for d in found), found)


def test_it_moves_every_delivery_in_the_observed_status() -> None:
    assert decide("uncertain", "completed", "uncertain") == ["d0", "d2"]


def test_a_channel_narrows_it() -> None:
    assert decide("uncertain", "uncertain", channel="channel1") == ["d1"]


def test_a_failed_delivery_beside_an_uncertain_one_is_reached_by_its_channel() -> None:
    assert decide("uncertain", "failed", expected="failed", channel="channel1") == ["d1"]


def test_a_status_that_is_no_longer_so_names_the_present_one() -> None:
    with pytest.raises(StatusChanged) as refusal:
        decide("completed", expected="failed")
    assert refusal.value.current_status == "completed"


def test_an_uncertain_resend_needs_the_risk_accepted() -> None:
    with pytest.raises(DuplicateRiskNotAccepted):
        decide("uncertain", allow=False)


def test_confirming_and_abandoning_need_no_such_word() -> None:
    assert decide("uncertain", verdict=Verdict.DELIVERED, allow=False) == ["d0"]
    assert decide("uncertain", verdict=Verdict.ABANDON, allow=False) == ["d0"]


@pytest.mark.parametrize("expected", ["pending", "processing", "completed", "skipped"])
def test_nobody_decides_about_what_needs_no_decision(expected: str) -> None:
    with pytest.raises(InvalidInput):
        decide(expected, expected=expected)


def test_a_failed_delivery_is_only_ever_sent_again() -> None:
    with pytest.raises(InvalidInput):
        decide("failed", expected="failed", verdict=Verdict.DELIVERED)


def test_a_channel_the_event_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidInput):
        decide("failed", expected="failed", channel="fax")
