"""When to try again, in seconds, as pure arithmetic: the caller brings the randomness."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """Exponential backoff with jitter and a limit of attempts for one automatic cycle."""

    max_attempts: int = 6
    first_delay_s: float = 1.0
    factor: float = 2.0
    max_delay_s: float = 300.0
    max_retry_after_s: float = 3600.0
    """A provider's Retry-After is honoured up to this; beyond it we ask again at this interval."""
    jitter: float = 0.2
    """Share of the delay added at random; never subtracted, so a Retry-After is never undercut."""

    def exhausted(self, cycle_attempts: int) -> bool:
        """Whether this cycle has no attempt left."""
        return cycle_attempts >= self.max_attempts

    def delay_s(self, cycle_attempts: int, retry_after_s: float | None, random01: float) -> float:
        """Seconds to wait after the given number of attempts; `random01` is uniform in [0, 1)."""
        backoff = min(self.max_delay_s, self.first_delay_s * self.factor ** max(0, cycle_attempts - 1))
        asked = min(retry_after_s or 0.0, self.max_retry_after_s)
        return max(backoff, asked) * (1.0 + self.jitter * random01)
