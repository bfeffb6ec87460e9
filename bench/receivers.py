"""The three receivers, lean and in one process of their own: each tells on standard output whom it was asked to reach.

The first line names the ports; every other one is `channel recipient time`, where the recipient is the name before any
`@` and the time is the machine's monotonic clock in nanoseconds.
"""

import asyncio
import json
import os
import time
from typing import cast

from process import run_main, stop_signal

_HEAD_END = b"\r\n\r\n"
_CONTENT_END = b"\r\n.\r\n"
_TOKEN = {"errcode": 0, "errmsg": "ok", "access_token": "token", "expires_in": 7_200}
_TAKEN = {"errcode": 0, "errmsg": "ok", "msgid": "1"}
_NO_CONTENT = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"


def _tell(channel: str, recipient: str) -> None:
    os.write(1, f"{channel} {recipient} {time.monotonic_ns()}\n".encode())


class _Http(asyncio.Protocol):
    """A webhook receiver, and WeCom below /cgi-bin; one request a connection."""

    def __init__(self) -> None:
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, body = self._read.partition(_HEAD_END)
        if found and len(body) >= _content_length(head):
            self._transport.write(_answer(head.split(b" ", 2)[1].decode("ascii"), body))
            self._transport.close()


def _content_length(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.partition(b"\r\n")[0]) if found else 0


def _answer(path: str, body: bytes) -> bytes:
    if path.startswith("/cgi-bin/gettoken"):
        return _json(_TOKEN)
    if path.startswith("/cgi-bin/message/send"):
        _tell("wecom", json.loads(body)["touser"])
        return _json(_TAKEN)
    _tell("webhook", path.removeprefix("/"))
    return _NO_CONTENT


def _json(value: dict[str, object]) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


class _Smtp(asyncio.Protocol):
    """An SMTP relay that takes everything; one message a connection."""

    def __init__(self) -> None:
        self._read = b""
        self._recipient = ""
        self._in_content = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(b"220 bench\r\n")

    def data_received(self, data: bytes) -> None:
        self._read += data
        while True:
            before, found, rest = self._read.partition(_CONTENT_END if self._in_content else b"\r\n")
            if not found:
                return
            self._read = rest
            self._took_content() if self._in_content else self._command(before.decode("ascii"))

    def _took_content(self) -> None:
        self._in_content = False
        _tell("email", self._recipient)
        self._transport.write(b"250 taken\r\n")

    def _command(self, line: str) -> None:
        verb = line[:4].upper()
        if verb == "RCPT":
            self._recipient = line.partition("<")[2].partition("@")[0]
        self._in_content = verb == "DATA"
        self._transport.write({"DATA": b"354 go on\r\n", "QUIT": b"221 bye\r\n"}.get(verb, b"250 ok\r\n"))
        if verb == "QUIT":
            self._transport.close()


async def main() -> int:
    """Serves until SIGTERM."""
    stop = stop_signal()
    loop = asyncio.get_running_loop()
    http = await loop.create_server(_Http, "127.0.0.1", 0, backlog=4_096)
    smtp = await loop.create_server(_Smtp, "127.0.0.1", 0, backlog=4_096)
    ports = {"http": http.sockets[0].getsockname()[1], "smtp": smtp.sockets[0].getsockname()[1]}
    os.write(1, json.dumps(ports).encode() + b"\n")
    await stop.wait()
    return 0


if __name__ == "__main__":
    run_main(main)
