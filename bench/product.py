"""The product under measurement: its own commands on a configuration of our own, in a directory of our own."""

import json
import secrets
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from api.auth import mint
from bench import child
from bench.usage import child_of
from tests.temporal import free_ports

_COMMAND = ("-c", "from cli import run; run()")


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the receivers listen."""

    http: int
    smtp: int


@dataclass(frozen=True, slots=True)
class Running:
    """A product that serves."""

    port: int
    token: str
    pid: int
    temporal_pid: int = 0
    """0 when it runs without a worker."""
    temporal: str = ""
    """Where its Temporal frontend listens."""


class Product:
    """One configuration with its database."""

    def __init__(self, directory: Path, database_url: str, receivers: Ports) -> None:
        self._directory = directory
        self.config = directory / "bench.toml"
        self._secret = secrets.token_urlsafe(48)
        (self._api_port,) = free_ports(1)
        self.config.touch(mode=0o600)
        self.config.write_text(_configuration(database_url, self._secret, self._api_port, receivers), "utf-8")

    @asynccontextmanager
    async def whole(self) -> AsyncIterator[Running]:
        """API, worker, relay and Temporal server, as `tidings dev` runs them."""
        temporal_port, ui_port = free_ports(2)
        ports = ("--api-port", self._api_port, "--temporal-port", temporal_port, "--ui-port", ui_port)
        options = ("--config", self.config, "--state-dir", self._directory / "state", *ports)
        async with child.running(*_COMMAND, "dev", *map(str, options)) as process:
            while await child.line(process) != "ready":
                pass
            yield Running(
                self._api_port, self._token(), process.pid, child_of(process.pid), f"127.0.0.1:{temporal_port}"
            )

    @asynccontextmanager
    async def api(self) -> AsyncIterator[Running]:
        """The API alone, as `tidings api` runs it: nothing takes events up."""
        await child.output(*_COMMAND, "migrate", "--config", str(self.config))
        async with child.running(
            *_COMMAND, "api", "--config", str(self.config), TIDINGS_LOG_LEVEL="WARNING"
        ) as process:
            yield Running(self._api_port, self._token(), process.pid)

    def _token(self) -> str:
        lifetime = timedelta(days=1)
        return mint(self._secret, tenant="bench", subject="bench", permissions=["tasks:write"], lifetime=lifetime)


@asynccontextmanager
async def receivers() -> AsyncIterator[tuple[Process, Ports]]:
    """The receivers' process and where they listen."""
    async with child.running("-m", "bench.receivers") as process:
        yield process, Ports(**json.loads(await child.line(process)))


def targets(recipient: str, receivers: Ports) -> dict[str, str]:
    """Where each channel reaches the recipient of this name."""
    return {
        "webhook": f"http://127.0.0.1:{receivers.http}/{recipient}",
        "email": f"{recipient}@bench.example",
        "wecom": recipient,
    }


def run_body(recipient: str, receivers: Ports) -> bytes:
    """The report of a run whose end is delivered on three channels, all to one recipient's name."""
    delivery = [{"channel": name, "recipient": target} for name, target in targets(recipient, receivers).items()]
    report = {"runId": "run-1", "status": "succeeded", "result": {"rows": 42, "note": "x" * 400}, "delivery": delivery}
    return json.dumps(report).encode()


def _configuration(database_url: str, secret: str, api_port: int, receivers: Ports) -> str:
    key = secrets.token_hex(32)
    return f"""
state_database_url = "{database_url}"
allowed_private_networks = ["127.0.0.0/8"]
[auth]
secret = "{secret}"
[api]
port = {api_port}
[secrets]
bench = "{key}"
[channels.webhook]
default_secret = "bench"
[channels.email.smtp]
host = "127.0.0.1"
port = {receivers.smtp}
tls = "none"
sender = "tidings@bench.example"
[channels.im.wecom]
base_url = "http://127.0.0.1:{receivers.http}"
corp_id = "bench"
corp_secret = "bench"
agent_id = 1
"""
