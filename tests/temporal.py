"""A private Temporal server for a test: our own development server on free ports and a database file of its own."""

import socket
from pathlib import Path

from dev.temporal_server import TemporalServer


def free_ports(count: int) -> list[int]:
    """Different ports on which nothing listens."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def private_server(directory: Path) -> TemporalServer:
    """A server to enter; its database and log lie in `directory`."""
    port, ui_port = free_ports(2)
    return TemporalServer(directory / "temporal.db", directory / "temporal.log", port=port, ui_port=ui_port)
