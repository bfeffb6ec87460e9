"""Which ports the development stack listens on."""

import socket
from dataclasses import dataclass

from process import Refused

LOOPBACK = "127.0.0.1"
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Wanted:
    """One port to choose."""

    option: str
    """The command-line option that gives it, such as `--ui-port`."""
    given: int | None
    """What the user asked for; then no other will do."""
    default: int
    """Where the search begins when the user asked for nothing."""


def choose(*wanted: Wanted) -> list[int]:
    """One free port for each, all different, in the same order. Raises Refused when a given one is taken."""
    reserved: dict[int, str] = {}
    for want in wanted:
        if want.given is not None:
            _refuse_taken(want.given, want.option, reserved)
            reserved[want.given] = want.option
    return [want.given or _next_free(want, reserved) for want in wanted]


def _refuse_taken(port: int, option: str, reserved: dict[int, str]) -> None:
    if other := reserved.get(port):
        raise Refused(f"port {port} is given to both {other} and {option}")
    if not _free(port):
        raise Refused(f"port {port} ({option}) is already in use")


def _next_free(want: Wanted, reserved: dict[int, str]) -> int:
    for port in range(want.default, _LAST_PORT + 1):
        if port not in reserved and _free(port):
            reserved[port] = want.option
            return port
    raise Refused(f"no free port from {want.default} on; give one with {want.option}")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        # A port whose last connections still wind down is free: only a listener refuses this.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
