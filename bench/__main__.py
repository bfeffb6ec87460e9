"""`python -m bench`: measures the product beside the bare ceiling on this machine and prints the ratios."""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import dissection, measurements
from bench.databases import Databases, databases
from bench.figures import Figures, middle
from bench.measurements import Load
from bench.product import receivers
from bench.soak import soak
from process import run_main

DATABASES = ("sqlite", "mariadb")


@dataclass(frozen=True, slots=True)
class Size:
    """How much to measure."""

    rounds: int
    """The bare ceiling and ours take turns, so that a machine that changes its mind changes it for both."""
    many: Load
    alone: Load
    accepts: int


FULL = Size(rounds=3, many=Load(50, events=400, warm_up=50), alone=Load(1, events=60, warm_up=10), accepts=1_500)
QUICK = Size(rounds=1, many=Load(50, events=100, warm_up=50), alone=Load(1, events=10, warm_up=3), accepts=200)


async def main(arguments: argparse.Namespace) -> int:
    """Measures what was asked for."""
    if arguments.soak:
        await soak(arguments.soak)
        return 0
    size = QUICK if arguments.quick else FULL
    with databases() as stores:
        figures = [*await _delivering(stores, size), *await _accepting(stores, size)]
        await _counts(stores, size)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in figures], indent=2) + "\n", "utf-8")
    return 0


async def _delivering(stores: Databases, size: Size) -> list[Figures]:
    print("Events delivered on three channels, beside workflows of three empty activities")
    loads = [size.many, size.alone]
    found: dict[str, list[list[Figures]]] = {"bare": [], **{kind: [] for kind in DATABASES}}
    for _ in range(size.rounds):
        found["bare"].append(await measurements.bare(loads))
        for kind in DATABASES:
            found[kind].append(await measurements.ours(stores, kind, loads))
    middles = {name: [middle(of_load) for of_load in zip(*rounds, strict=True)] for name, rounds in found.items()}
    for number in range(len(loads)):
        for name, rounds in found.items():
            ratio = middles[name][number].per_s / middles["bare"][number].per_s
            rates = ", ".join(f"{one[number].per_s:.1f}" for one in rounds)
            print(f"{middles[name][number].line()}   ratio {ratio:.2f} (rounds {rates})")
    return [figures for of_name in middles.values() for figures in of_name]


async def _accepting(stores: Databases, size: Size) -> list[Figures]:
    print("\nAccepting only, beside what the database commits")
    figures: list[Figures] = []
    for kind in DATABASES:
        ceilings, accepts = await measurements.accepting(stores, kind, size.accepts)
        for ceiling in ceilings:
            print(ceiling.line())
        print(f"{accepts.line()}   ratio {accepts.per_s / max(one.per_s for one in ceilings):.2f}")
        figures += [*ceilings, accepts]
    return figures


async def _counts(stores: Databases, size: Size) -> None:
    print("\nOne event of three deliveries, exactly (SQLite)")
    with stores.new("sqlite") as (directory, url, _):
        async with receivers() as (_, ports):
            for line in await dissection.table(directory, url, ports, events=min(20, size.alone.events), at_once=20):
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
