"""`tidings doctor`: one line for each part of a deployment, and what is wrong with it."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from api.auth import Verifier
from channels import registry
from settings import Settings, SettingsError, load
from store import migrate
from store.database import Database, Stores, described
from worker import temporal_config
from workflows import calls

RPC_TIMEOUT = timedelta(seconds=5)

_DURABLE = {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"}
"""Server variables without which an answered commit can be lost in a power cut."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One part and how it is."""

    part: str
    sound: bool
    text: str


async def examine(config: Path | None) -> list[Finding]:
    """Looks at everything. Raises SettingsError when the configuration itself cannot be read."""
    settings = load(config)
    return [
        Finding("configuration", True, "valid"),
        _authentication(settings),
        *_databases(settings),
        await _temporal(settings),
        *_channels(settings),
    ]


def _authentication(settings: Settings) -> Finding:
    try:
        Verifier(settings.auth)
    except SettingsError as fault:
        return Finding("authentication", False, str(fault))
    return Finding("authentication", True, "a key is configured")


def _databases(settings: Settings) -> list[Finding]:
    stores = Stores.open(settings.state_url, settings.config_url, connections=1)
    try:
        names = ["database"] if len(stores.each()) == 1 else ["state database", "config database"]
        return [_database(name, database) for name, database in zip(names, stores.each(), strict=True)]
    finally:
        stores.close()


def _database(name: str, database: Database) -> Finding:
    try:
        lacking = migrate.missing(database)
        faults = [] if database.name == "sqlite" else _server_faults(database)
    except SQLAlchemyError as error:
        return Finding(name, False, f"the {database.name} server {described(error)}")
    if lacking:
        faults.append(f"lacks the migrations {', '.join(lacking)}: run `tidings migrate`")
    return Finding(name, not faults, "; ".join(faults) or f"{database.name}, up to date")


def _server_faults(database: Database) -> list[str]:
    def read(connection: Connection) -> list[str]:
        rows = connection.execute(
            text("SHOW VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin')")
        )
        found = {name: str(value) for name, value in rows}
        wanted = dict(_DURABLE) if found.get("log_bin") == "ON" else {"innodb_flush_log_at_trx_commit": "1"}
        return [
            f"{name} is {found.get(name)}, not {value}" for name, value in wanted.items() if found.get(name) != value
        ]

    return database.read(read)


async def _temporal(settings: Settings) -> Finding:
    try:
        wanted = temporal_config()
        client = await Client.connect(**wanted)
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
        )
    except SettingsError as fault:
        return Finding("temporal", False, str(fault))
    except (RuntimeError, RPCError):
        return Finding("temporal", False, f"{wanted['target_host']} or its namespace does not answer")
    lacking = await _lacking_attributes(client) if settings.temporal.search_attributes else []
    if lacking:
        command = "temporal operator search-attribute create" + "".join(f" --name {n} --type Keyword" for n in lacking)
        return Finding("temporal", False, f"namespace {client.namespace} lacks search attributes; run: {command}")
    return Finding("temporal", True, f"namespace {client.namespace} answers")


async def _lacking_attributes(client: Client) -> list[str]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    try:
        found = await client.operator_service.list_search_attributes(request, timeout=RPC_TIMEOUT)
    except RPCError:
        return []  # not every Temporal lets a client ask; starts fall back to none
    return [key.name for key in (calls.TENANT, calls.KIND, calls.STATE) if key.name not in found.custom_attributes]


def _channels(settings: Settings) -> list[Finding]:
    try:
        built = registry.build(settings)
    except SettingsError as fault:
        return [Finding("channels", False, str(fault))]
    return [Finding(f"channel {name}", True, f"carried by {c.provider}") for name, c in built.items()]
