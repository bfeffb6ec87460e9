"""`tidings dev`: Temporal's development server, API, worker and relay in one process, on loopback only."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from temporalio.client import Client

import logs
from api.app import create_app
from api.serve import serve
from dev.ports import LOOPBACK, Wanted, choose
from dev.state_dir import WEBHOOK_SECRET, StateDir
from dev.temporal_server import NAMESPACE, TemporalServer
from process import Refused, stop_signal
from settings import Settings, load
from store import migrate
from store.database import Stores, described
from worker import running

LOOPBACK_NETWORKS = ("127.0.0.0/8", "::1/128")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said."""

    state_dir: Path
    config: Path | None = None
    api_port: int | None = None
    temporal_port: int | None = None
    ui_port: int | None = None


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the running stack is reached; kept in the state directory for the other commands."""

    api: str
    temporal: str
    ui: str

    @classmethod
    def of(cls, state: StateDir) -> "Addresses | None":
        """The addresses of the stack that last used this directory; None when there are none."""
        with suppress(OSError, ValueError, TypeError):
            return cls(**json.loads(_addresses_file(state).read_text(encoding="utf-8")))
        return None

    def keep(self, state: StateDir) -> None:
        """Writes them for the other commands."""
        _addresses_file(state).write_text(json.dumps(asdict(self)), encoding="utf-8")


Announce = Callable[[Addresses, Settings, StateDir], None]
"""Called once everything serves."""


async def run(options: Options, announce: Announce) -> int:
    """Runs the stack until SIGTERM or SIGINT. Raises Refused."""
    state = StateDir(options.state_dir)
    with state.held():
        settings = development_settings(state, options.config)
        api_port, temporal_port, ui_port = choose(
            Wanted("--api-port", options.api_port, settings.api.port),
            Wanted("--temporal-port", options.temporal_port, 7233),
            Wanted("--ui-port", options.ui_port, 8233),
        )
        logs.configure(settings.log_level, state.path / "tidings.log")
        server = TemporalServer(state.temporal_database, state.temporal_log, port=temporal_port, ui_port=ui_port)
        addresses = Addresses(f"http://{LOOPBACK}:{api_port}", server.address, server.ui_url)
        temporal = settings.temporal.model_copy(update={"ui_url": server.ui_url, "namespace": NAMESPACE})
        await _serve(settings.model_copy(update={"temporal": temporal}), state, server, addresses, api_port, announce)
    return 0


def development_settings(state: StateDir, config: Path | None) -> Settings:
    """The user's settings where they say something, and what works out of the box on loopback where they do not."""
    defaults: dict[str, Any] = {
        "state_database_url": f"sqlite:///{state.state_database}",
        "allowed_private_networks": LOOPBACK_NETWORKS,
        "secrets_dir": state.secrets_dir,
        "channels": {"webhook": {"default_secret": WEBHOOK_SECRET}},
    }
    settings = load(config, **defaults)
    return (
        settings if settings.auth.configured else load(config, **defaults, auth={"secret_file": state.jwt_secret_file})
    )


async def _serve(
    settings: Settings, state: StateDir, server: TemporalServer, addresses: Addresses, api_port: int, announce: Announce
) -> None:
    stop = stop_signal()
    stores = Stores.open(
        settings.state_url, settings.config_url, connections=settings.worker.store_threads + settings.api.threads
    )
    try:
        _migrate(stores)
        async with server:
            client = await Client.connect(server.address, namespace=NAMESPACE)
            async with running(settings, stores, client, stop) as nudge:
                app = create_app(settings, stores, nudge=nudge)
                addresses.keep(state)
                await serve(app, LOOPBACK, api_port, stop, listening=lambda: announce(addresses, settings, state))
                print("stopping: sends under way may finish first", flush=True)
    except OSError as error:
        raise Refused(f"cannot listen on port {api_port}: {error.strerror}") from None
    finally:
        stores.close()


def _migrate(stores: Stores) -> None:
    try:
        for database in stores.each():
            migrate.upgrade(database)
    except SQLAlchemyError as error:
        raise Refused(f"a database {described(error)}") from None


def _addresses_file(state: StateDir) -> Path:
    return state.path / "addresses.json"
