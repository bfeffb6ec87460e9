"""`python -m bench`: measures the product beside the bare ceiling on this machine and prints the ratios."""

import argparse
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import dissection, measurements
from bench.figures import Figures, middle
from bench.product import receivers
from bench.soak import soak
from process import run_main

DATABASES = ("sqlite", "mariadb")
IN_FLIGHT = 50


@dataclass(frozen=True, slots=True)
class Size:
    """How much to measure."""

    rounds: int
    """The bare ceiling and ours take turns, so that a machine that changes its mind changes it for both."""
    events: int
    warm_up: int
    alone: int
    """Events one after another."""
    accepts: int


FULL = Size(rounds=3, events=400, warm_up=50, alone=60, accepts=1_500)
QUICK = Size(rounds=1, events=100, warm_up=20, alone=10, accepts=200)


async def main(arguments: argparse.Namespace) -> int:
    """Measures what was asked for."""
    if arguments.soak:
        await soak(arguments.soak)
        return 0
    size = QUICK if arguments.quick else FULL
    figures = [*await _throughput(size), *await _alone(size), *await _accepting(size)]
    await _counts(size)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in figures], indent=2) + "\n", "utf-8")
    return 0


async def _throughput(size: Size) -> list[Figures]:
    print(f"Events delivered on three channels, {IN_FLIGHT} in flight, beside empty workflows of three activities")
    plan: dict[str, Callable[[], Awaitable[Figures]]] = {
        "bare": lambda: measurements.bare(IN_FLIGHT, size.events, size.warm_up),
        "sqlite": lambda: measurements.ours("sqlite", IN_FLIGHT, size.events, size.warm_up),
        "mariadb": lambda: measurements.ours("mariadb", IN_FLIGHT, size.events, size.warm_up),
    }
    found: dict[str, list[Figures]] = {name: [] for name in plan}
    for _ in range(size.rounds):
        for name, measure in plan.items():
            found[name].append(await measure())
    middles = {name: middle(rounds) for name, rounds in found.items()}
    for name, figures in middles.items():
        print(f"{figures.line()}   ratio {figures.per_s / middles['bare'].per_s:.2f}")
        if size.rounds > 1:
            print(f"    rounds: {'  '.join(f'{one.per_s:.1f}/s' for one in found[name])}")
    return list(middles.values())


async def _alone(size: Size) -> list[Figures]:
    print("\nOne event after another")
    warm_up = min(10, size.warm_up)
    figures = [await measurements.bare(1, size.alone, warm_up)]
    figures += [await measurements.ours(kind, 1, size.alone, warm_up) for kind in DATABASES]
    for one in figures:
        print(one.line())
    return figures


async def _accepting(size: Size) -> list[Figures]:
    print("\nAccepting only, beside what the database commits")
    figures: list[Figures] = []
    for kind in DATABASES:
        ceilings, accepts = await measurements.accepting(kind, size.accepts)
        for ceiling in ceilings:
            print(ceiling.line())
        print(f"{accepts.line()}   ratio {accepts.per_s / max(one.per_s for one in ceilings):.2f}")
        figures += [*ceilings, accepts]
    return figures


async def _counts(size: Size) -> None:
    print("\nOne event of three deliveries, exactly (SQLite)")
    async with measurements.database("sqlite") as (directory, url, _), receivers() as (_, ports):
        for line in await dissection.table(directory, url, ports, events=min(20, size.alone), at_once=20):
            print(line)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything: under a minute")
    parser.add_argument("--soak", type=int, metavar="N", help="only run N events and watch the memory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser.parse_args()


if __name__ == "__main__":
    arguments = _arguments()
    run_main(lambda: main(arguments))
