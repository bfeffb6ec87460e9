"""What every channel test starts from: loopback allowed, a fresh certificate authority, short timeouts."""

import ssl
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from channels.destinations import Guard
from channels.exchange import Exchange
from channels.tls import trust
from tests.doubles.certificates import Authority

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@pytest.fixture
def guard() -> Guard:
    """Allows loopback."""
    return Guard(LOOPBACK)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """One certificate authority for the run."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def tls(authority: Authority) -> ssl.SSLContext:
    """Trusts the authority of the run."""
    return trust(authority.ca_file)


@pytest.fixture
async def exchange(tls: ssl.SSLContext) -> AsyncIterator[Exchange]:
    """Closed after the test."""
    exchange = Exchange(tls)
    yield exchange
    await exchange.close()


@pytest.fixture
def secrets_dir(tmp_path: Path) -> Path:
    """A folder with the secret `main`."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "main").write_text("whsec_bWFpbiBzZWNyZXQgb2YgdGhlIHRlc3RzLCAzMmI=\n")
    return folder
