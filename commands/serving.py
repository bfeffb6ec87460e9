"""`tidings api` and `tidings worker`: the two production processes."""

import logging
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

import logs
from api.app import create_app
from api.serve import serve
from process import Refused, stop_signal
from settings import Settings, load
from store import migrate
from store.database import Stores
from worker import connect, running

LOG = logging.getLogger("tidings.process")


async def run_api(config: Path | None) -> int:
    """Serves the API until SIGTERM or SIGINT. Raises Refused, SettingsError."""
    settings = load(config)
    logs.configure(settings.log_level)
    stop = stop_signal()
    stores = _stores(settings, settings.api.threads)
    try:
        app = create_app(settings, stores)
        await serve(app, settings.api.host, settings.api.port, stop, listening=lambda: LOG.info("ready"))
        LOG.info("stopped")
    except OSError as error:
        raise Refused(f"cannot listen on {settings.api.host} port {settings.api.port}: {error.strerror}") from None
    finally:
        stores.close()
    return 0


async def run_worker(config: Path | None) -> int:
    """Runs worker and relay until SIGTERM or SIGINT. Raises Refused, SettingsError."""
    settings = load(config)
    logs.configure(settings.log_level)
    stop = stop_signal()
    stores = _stores(settings, settings.worker.store_threads)
    try:
        client = await connect(stop)
        if client is not None:
            async with running(settings, stores, client, stop):
                LOG.info("ready")
                await stop.wait()
                LOG.info("stopping")
            LOG.info("stopped")
    finally:
        stores.close()
    return 0


def _stores(settings: Settings, connections: int) -> Stores:
    """The stores, refused when they lack a migration; one that does not answer yet is waited for while serving."""
    stores = Stores.open(settings.state_url, settings.config_url, connections=connections)
    for database in stores.each():
        try:
            lacking = migrate.missing(database)
        except SQLAlchemyError as error:
            LOG.warning("store_unavailable", extra={"error_type": type(error).__name__})
            continue
        if lacking:
            stores.close()
            raise Refused(f"a database lacks the migrations {', '.join(lacking)}; run `tidings migrate` first")
    return stores
