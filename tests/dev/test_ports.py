"""Choosing ports: what was asked for or nothing; what was not asked for gives way."""

import socket
from collections.abc import Iterator

import pytest

from dev.ports import Wanted, choose
from process import Refused
from tests.temporal import free_ports


@pytest.fixture
def taken() -> Iterator[int]:
    """A port with a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_given_port_that_is_taken_is_refused(taken: int) -> None:
    with pytest.raises(Refused, match=rf"^port {taken} \(--ui-port\) is already in use$"):
        choose(Wanted("--ui-port", taken, 8233))


def test_a_port_taken_on_every_address_is_taken() -> None:
    with socket.create_server(("", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(Refused):
            choose(Wanted("--ui-port", port, 8233))


def test_a_default_port_that_is_taken_gives_way(taken: int) -> None:
    (port,) = choose(Wanted("--ui-port", None, taken))
    assert port > taken


def test_free_ports_are_taken_as_they_are() -> None:
    given, default = free_ports(2)
    assert choose(Wanted("--api-port", given, 1), Wanted("--ui-port", None, default)) == [given, default]


def test_no_two_are_the_same() -> None:
    (port,) = free_ports(1)
    chosen = choose(Wanted("--a", None, port), Wanted("--b", port, 1), Wanted("--c", None, port))
    assert chosen[1] == port
    assert len(set(chosen)) == 3


def test_one_port_for_two_things_is_refused() -> None:
    (port,) = free_ports(1)
    with pytest.raises(Refused, match=rf"^port {port} is given to both --a and --b$"):
        choose(Wanted("--a", port, 1), Wanted("--b", port, 1))


def test_running_out_of_ports_is_refused() -> None:
    with socket.socket() as last:
        last.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        last.bind(("127.0.0.1", 65_535))
        last.listen()
        with pytest.raises(Refused, match=r"^no free port from 65535 on; give one with --a$"):
            choose(Wanted("--a", None, 65_535))
