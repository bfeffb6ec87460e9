"""A whole deployment for a test: the two production processes on a private database, Temporal and providers."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx

from api.auth import mint
from tests.temporal import free_ports

ROOT = Path(__file__).parents[2]
PERMISSIONS = ["tasks:write", "approvals:write", "runs:read", "runs:write"]
SECRET = "a secret of thirty-two bytes, or a few more"
WEBHOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PATIENCE_S = 40.0

T = TypeVar("T")


def until(ask: Callable[[], T | None], what: str, patience_s: float = PATIENCE_S) -> T:
    """The first true answer; fails when there is none in time."""
    give_up = time.monotonic() + patience_s
    while True:
        if found := ask():
            return found
        assert time.monotonic() < give_up, f"waited in vain for: {what}"
        time.sleep(0.02)


class Deployment:
    """Processes to start, stop and kill, and a client of the API. A context manager that ends what still runs."""

    def __init__(
        self,
        directory: Path,
        *,
        database_url: str | None = None,
        temporal: str,
        wecom_url: str = "http://127.0.0.1:9",
        smtp_port: int = 9,
        lease_s: float = 3.0,
        send_timeout_s: float = 2.0,
    ) -> None:
        self.directory = directory
        self.tenant = f"tenant-{uuid.uuid4().hex[:8]}"
        self.log = directory / "processes.log"
        self.state_url = database_url or f"sqlite:///{directory}/tidings.db"
        self.temporal = temporal
        (self.port,) = free_ports(1)
        self._config = directory / "tidings.toml"
        self._config.write_text(
            f"""
state_database_url = "{self.state_url}"
allowed_private_networks = ["127.0.0.0/8"]
log_level = "DEBUG"
[secrets]
main = "{WEBHOOK_SECRET}"
[auth]
secret = "{SECRET}"
[api]
port = {self.port}
[temporal]
task_queue = "{self.tenant}"
[worker]
lease_s = {lease_s}
drain_s = 5
[relay]
sweep_every_s = 0.5
stale_after_s = 2
idle_poll_s = 0.1
[retry]
first_delay_s = 0.1
max_delay_s = 0.3
[channels.webhook]
timeout_s = {send_timeout_s}
default_secret = "main"
[channels.email.smtp]
host = "127.0.0.1"
port = {smtp_port}
tls = "none"
sender = "tidings@sender.example"
timeout_s = {send_timeout_s}
final_reply_timeout_s = {send_timeout_s}
[channels.im.wecom]
base_url = "{wecom_url}"
corp_id = "corp"
corp_secret = "a-corp-secret-that-nobody-may-see"
agent_id = 1
timeout_s = {send_timeout_s}
""",
            encoding="utf-8",
        )
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {self.token()}"},
            timeout=30,
            trust_env=False,
        )

    def __enter__(self) -> "Deployment":
        self.command("migrate")
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        for name in list(self.processes):
            self.stop(name)

    def token(self, tenant: str | None = None, permissions: list[str] = PERMISSIONS) -> str:
        """A token for this deployment."""
        return mint(
            SECRET,
            tenant=tenant or self.tenant,
            subject="tester",
            permissions=permissions,
            lifetime=timedelta(hours=1),
        )

    def command(self, *words: str) -> str:
        """Runs a command of `tidings` to its end; what it printed."""
        done = subprocess.run(
            tidings(*words), env=self._environment(), cwd=self.directory, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def start(self, *names: str) -> None:
        """Starts `api` or `worker` (or another worker, `worker-2`); returns when they serve."""
        for name in names:
            with self.log.open("ab") as log:
                begun = log.tell()
                self.processes[name] = subprocess.Popen(
                    tidings(name.partition("-")[0]), env=self._environment(), cwd=self.directory, stdout=log, stderr=log
                )
            until(lambda begun=begun: b'"event": "ready"' in self.log.read_bytes()[begun:], f"{name} is ready")  # type: ignore[misc]

    def kill(self, name: str) -> None:
        """Ends a process as `kill -9` does."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> int:
        """Ends a process as a service manager does; its exit code."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        return process.wait(timeout=30)

    def report(self, task: str | None = None, **fields: Any) -> str:
        """Reports a task as succeeded; the id of its first event."""
        body = {"runId": "run", "status": "succeeded", **fields}
        answer = self.client.put(f"/api/tasks/{task or uuid.uuid4().hex}", json=body)
        assert answer.status_code == 200, answer.text
        event_id: str = answer.json()["events"][0]["eventId"]
        return event_id

    def event(self, event_id: str) -> dict[str, Any]:
        """The event with its timeline."""
        answer = self.client.get(f"/admin/api/notification-outbox/{event_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def reaches(self, event_id: str, *statuses: str, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """Waits until the event has one of these statuses."""

        def ask() -> dict[str, Any] | None:
            found = self.event(event_id)
            return found if found["status"] in statuses else None

        return until(ask, f"{event_id} is {' or '.join(statuses)}", patience_s)

    def retry(self, event_id: str, **order: Any) -> httpx.Response:
        """Asks to send again."""
        return self.client.post(f"/admin/api/notification-outbox/{event_id}/retry", json=order)

    def resolve(self, event_id: str, **order: Any) -> httpx.Response:
        """Decides about a doubt."""
        return self.client.post(f"/admin/api/notification-outbox/{event_id}/resolve", json=order)

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TIDINGS_", "TEMPORAL_"))}
        return {
            **kept,
            "PYTHONPATH": str(ROOT),
            "TIDINGS_CONFIG": str(self._config),
            "TEMPORAL_ADDRESS": self.temporal,
        }


def tidings(*words: str) -> list[str]:
    """The command line of one of our commands."""
    return [sys.executable, "-c", "import cli; cli.run()", *words]
