"""Requests that no HTTP client would write: bytes to a socket, and what comes back."""

import json
import socket
from dataclasses import dataclass
from typing import Any

from tests.api.served import Served

HEAD_END = b"\r\n\r\n"
TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server wrote before it closed."""

    status: int
    head: str
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        """The error of an answer in the one shape."""
        found: dict[str, Any] = json.loads(self.body)["error"]
        return found


def exchange(served: Served, line: bytes, headers: tuple[bytes, ...] = (), body: bytes = b"") -> Answer:
    """One request with a good token, on a connection of its own."""
    head = (line, b"Host: tidings.example", b"Connection: close", _authorization(served), *headers)
    with socket.create_connection(("127.0.0.1", served.port), timeout=TIMEOUT_S) as connection:
        connection.sendall(b"\r\n".join(head) + HEAD_END + body)
        answered = b"".join(iter(lambda: connection.recv(65_536), b""))
    answered_head, _, answered_body = answered.partition(HEAD_END)
    return Answer(int(answered_head.split(b" ")[1]), answered_head.decode("latin-1"), answered_body)


def hang_up(served: Served, line: bytes, promised: int, body: bytes) -> None:
    """A request whose body ends before its length."""
    head = (line, b"Host: tidings.example", b"Content-Length: %d" % promised, _authorization(served))
    with socket.create_connection(("127.0.0.1", served.port), timeout=TIMEOUT_S) as connection:
        connection.sendall(b"\r\n".join(head) + HEAD_END + body)


def _authorization(served: Served) -> bytes:
    with served.client() as client:
        return b"Authorization: " + client.headers["authorization"].encode()
