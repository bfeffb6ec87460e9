"""What the end-to-end tests share: one Temporal server a session, one deployment with its providers a file."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from dev.temporal_server import TemporalServer
from tests.doubles.smtp_server import SmtpScript, SmtpServer
from tests.doubles.threads import in_thread
from tests.doubles.wecom import WeComServer
from tests.e2e.deployment import Deployment
from tests.temporal import private_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is end to end."""
    for item in items:
        if "tests/e2e/" in item.nodeid:
            item.add_marker(pytest.mark.e2e)


@dataclass
class Providers:
    """The providers of a deployment, to be told how to behave."""

    wecom: WeComServer
    smtp: SmtpServer

    def behave(self) -> None:
        """Forgets every script and every message."""
        self.wecom.send_script.clear()
        self.wecom.token_script.clear()
        self.wecom.messages.clear()
        self.smtp.script = SmtpScript()
        self.smtp.messages.clear()


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    """A Temporal server that nobody stops."""
    with in_thread(private_server(tmp_path_factory.mktemp("temporal"))) as server:
        yield server


@pytest.fixture(scope="session")
def shared_providers() -> Iterator[Providers]:
    """One WeCom and one SMTP server."""
    with in_thread(WeComServer()) as wecom, in_thread(SmtpServer()) as smtp:
        yield Providers(wecom, smtp)


@pytest.fixture
def providers(shared_providers: Providers) -> Providers:
    """Providers that behave, until the test tells them otherwise."""
    shared_providers.behave()
    return shared_providers


@pytest.fixture(scope="module")
def deployment(
    tmp_path_factory: pytest.TempPathFactory, temporal: TemporalServer, shared_providers: Providers
) -> Iterator[Deployment]:
    """API and worker over SQLite, running for the whole file."""
    deployment = Deployment(
        tmp_path_factory.mktemp("deployment"),
        temporal=temporal.address,
        wecom_url=shared_providers.wecom.url,
        smtp_port=shared_providers.smtp.port,
        send_timeout_s=1.0,
    )
    with deployment:
        deployment.start("api", "worker")
        yield deployment
