"""How many one-row transactions a second the database itself commits, on the connections that the product would use."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from bench.figures import Figures, Spread
from bench.usage import Meter
from store.database import Database

ROW = "x" * 500


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run; given as one JSON object on the command line."""

    url: str
    connections: int
    commits: int
    server_pid: int
    """0 when the database has no process of its own."""


def main(plan: Plan) -> None:
    """Measures and prints the figures as JSON."""
    database = Database(plan.url, connections=plan.connections)
    try:
        print(json.dumps(asdict(_measured(database, plan))))
    finally:
        database.close()


def _measured(database: Database, plan: Plan) -> Figures:
    with database.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS bench_commits (body VARCHAR(500) NOT NULL)")
    left, latencies = iter(range(plan.commits)), list[float]()
    writers = [threading.Thread(target=_write, args=(database, left, latencies)) for _ in range(plan.connections)]
    server = {"mariadb": plan.server_pid} if plan.server_pid else {}
    meter, started = Meter({"client": os.getpid(), **server}), time.monotonic()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    per_s = len(latencies) / (time.monotonic() - started)
    name = f"raw commits, {plan.connections} connections"
    return Figures(name, per_s, {"commit": Spread.of(latencies)}, meter.ms_per(plan.commits))


def _write(database: Database, left: Iterator[int], latencies: list[float]) -> None:
    """On the driver alone: the ceiling is the database's, not SQLAlchemy's."""
    connection = database.engine.raw_connection()
    try:
        cursor = connection.cursor()
        for _ in left:
            started = time.monotonic()
            cursor.execute(f"INSERT INTO bench_commits (body) VALUES ('{ROW}')")
            connection.commit()
            latencies.append(time.monotonic() - started)
    finally:
        connection.close()


if __name__ == "__main__":
    main(Plan(**json.loads(sys.argv[1])))
