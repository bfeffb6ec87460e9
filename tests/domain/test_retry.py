"""When to try again."""

from hypothesis import given
from hypothesis import strategies as st

from domain.retry import RetrySchedule

SCHEDULE = RetrySchedule()


def test_it_doubles_up_to_its_limit() -> None:
    delays = [RetrySchedule(max_delay_s=10).delay_s(n, None, 0.0) for n in range(1, 7)]
    assert delays == [1, 2, 4, 8, 10, 10]


def test_six_attempts_are_a_cycle() -> None:
    assert [SCHEDULE.exhausted(n) for n in (1, 5, 6, 7)] == [False, False, True, True]


@given(st.integers(1, 6), st.floats(0, 3_600), st.floats(0, 1, exclude_max=True))
def test_jitter_never_undercuts_what_the_provider_asked(attempts: int, asked: float, random01: float) -> None:
    assert SCHEDULE.delay_s(attempts, asked, random01) >= asked


def test_an_absurd_retry_after_is_capped() -> None:
    assert SCHEDULE.delay_s(1, 10.0**9, 0.0) == SCHEDULE.max_retry_after_s
