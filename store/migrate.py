"""Bringing a database up to date, and saying whether it is. An earlier migration is never edited."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from store.database import Database

_SCRIPTS = Path(__file__).parent / "migrations"


def upgrade(database: Database) -> None:
    """Applies every migration that is missing; safe to run again, and a no-op on a newer release's database."""
    if not missing(database):
        return
    with database.engine.begin() as connection:
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def missing(database: Database) -> list[str]:
    """The migrations the database lacks, oldest first; empty when it is up to date.

    A revision that this release does not know was applied by a newer one. Migrations only add, so nothing is lacking:
    an old release runs on it, during a rolling upgrade and after a rollback.
    """
    scripts = ScriptDirectory.from_config(_config())
    with database.engine.connect() as connection:
        present = MigrationContext.configure(connection).get_current_revision()
        connection.rollback()
    known = [revision.revision for revision in scripts.walk_revisions()][::-1]
    if present is None:
        return known
    return known[known.index(present) + 1 :] if present in known else []


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    return config
