"""`tidings dev` as a newcomer runs it: one command, a story, a state that survives, one clear line when it cannot."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.deployment import ROOT, tidings, until
from tests.temporal import free_ports


class Dev:
    """One `tidings dev` in a directory of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self.output = directory / "output.txt"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                tidings("dev", "--state-dir", "state", *options),
                cwd=directory,
                env=environment(),
                stdout=output,
                stderr=output,
            )

    @property
    def told(self) -> str:
        """What it printed so far."""
        return self.output.read_text()

    def ready(self) -> None:
        """Waits until it serves."""
        until(lambda: "\nready\n" in self.told or self.process.poll() is not None, "it is ready or has ended")
        assert self.process.poll() is None, self.told

    def address(self) -> str:
        """Where its API is."""
        found = re.search(r"(http://127\.0\.0\.1:\d+)/docs", self.told)
        assert found, self.told
        return found[1]

    def command(self, *words: str) -> str:
        """Runs another command on the same state directory."""
        done = subprocess.run(
            tidings(*words, "--state-dir", "state"),
            cwd=self.directory,
            env=environment(),
            capture_output=True,
            timeout=60,
            check=True,
        )
        return done.stdout.decode()


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TIDINGS_", "TEMPORAL_"))}
    return {**kept, "PYTHONPATH": str(ROOT)}


@contextmanager
def running(directory: Path, *options: str) -> Iterator[Dev]:
    dev = Dev(directory, *options)
    try:
        dev.ready()
        yield dev
    finally:
        dev.process.kill()
        dev.process.wait()


def ports() -> tuple[str, ...]:
    api, temporal, ui = map(str, free_ports(3))
    return "--api-port", api, "--temporal-port", temporal, "--ui-port", ui


def statuses(dev: Dev) -> str:
    return dev.command("outbox", "list", "--tenant", "demo")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_sample_tells_its_story_and_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, "--sample", *ports()) as dev:
        until(lambda: "its workflow:" in dev.told, "the story of the sample")
        event = re.search(r"X-Bailing-Event-Id (\S+_callback_sample-\d+_run-1)", dev.told)
        assert event, dev.told
        assert "signature verified by the public standardwebhooks library" in dev.told
        assert f'"notification_event_id": "{event[1]}"' in dev.told
        assert "the event is completed" in dev.told
        dev.process.send_signal(number)
        assert dev.process.wait(timeout=30) == 0
        assert "Traceback" not in dev.told


def test_its_state_survives_a_kill(tmp_path: Path) -> None:
    with running(tmp_path, "--sample", *ports()) as dev:
        until(lambda: "the event is completed" in dev.told, "the sample is delivered")
        before = statuses(dev)
        assert "completed" in before
        dev.process.kill()
        dev.process.wait()
    with running(tmp_path, *ports()) as dev:
        assert statuses(dev) == before
        token = dev.command("token", "--tenant", "demo", "--subject", "me", "--permission", "runs:read").strip()
        headers = {"Authorization": f"Bearer {token}"}
        listed = httpx.get(f"{dev.address()}/admin/api/notification-outbox", headers=headers, trust_env=False)
        assert len(listed.json()["items"]) == 1


def test_a_second_one_on_the_same_state_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, *ports()):
        second = refused(tmp_path, *ports())
        assert "another `tidings dev`" in second


def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert refused(tmp_path, "--api-port", port) == f"tidings: port {port} (--api-port) is already in use\n"


def refused(directory: Path, *options: str) -> str:
    """What it says on standard error when it does not start."""
    done = subprocess.run(
        tidings("dev", "--state-dir", "state", *options),
        cwd=directory,
        env=environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    said = done.stderr.decode()
    assert said.count("\n") == 1, said
    return said
