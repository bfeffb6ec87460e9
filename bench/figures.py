"""Figures of one measurement: a rate, latencies, processor time; and how they are compared and printed."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Latencies in milliseconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> "Spread":
        """The spread of at least one latency."""
        ordered = sorted(seconds)
        return cls(_at(ordered, 0.50) * 1_000, _at(ordered, 0.99) * 1_000)


@dataclass(frozen=True, slots=True)
class Figures:
    """One measurement under one name."""

    name: str
    per_s: float
    latency_ms: dict[str, Spread]
    cpu_ms: dict[str, float]
    """Processor time for one unit of work, by process."""

    def line(self) -> str:
        """One line of the table."""
        latencies = "  ".join(f"{name} {spread.p50:.1f}/{spread.p99:.1f}" for name, spread in self.latency_ms.items())
        processors = "  ".join(f"{name} {ms:.1f}" for name, ms in self.cpu_ms.items())
        return f"  {self.name:<30} {self.per_s:>8.1f}/s   p50/p99 ms: {latencies}   CPU ms: {processors}"


def middle(rounds: Sequence[Figures]) -> Figures:
    """The round with the middle rate: all figures of one real round, none of them mixed."""
    return sorted(rounds, key=lambda figures: figures.per_s)[len(rounds) // 2]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Growth of the second figure for each unit of the first: least squares."""
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
