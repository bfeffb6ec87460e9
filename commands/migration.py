"""`tidings migrate`: brings the state and config databases up to date, or only says whether they are."""

from pathlib import Path

from alembic.util.exc import CommandError
from sqlalchemy.exc import SQLAlchemyError

from process import Refused
from settings import load
from store import migrate
from store.database import Database, Stores, described


def run(config: Path | None, *, check: bool) -> list[str]:
    """One line a database. Raises Refused when one does not answer or, when only checking, is not up to date."""
    settings = load(config)
    stores = Stores.open(settings.state_url, settings.config_url, connections=1)
    try:
        names = ["state and config"] if len(stores.each()) == 1 else ["state", "config"]
        return [_one(name, database, check=check) for name, database in zip(names, stores.each(), strict=True)]
    finally:
        stores.close()


def _one(name: str, database: Database, *, check: bool) -> str:
    try:
        lacking = migrate.missing(database)
        if lacking and check:
            raise Refused(f"the {name} database lacks the migrations {', '.join(lacking)}")
        if lacking:
            migrate.upgrade(database)
    except SQLAlchemyError as error:
        raise Refused(f"the {name} database {described(error)}") from None
    except CommandError as error:
        raise Refused(f"the {name} database cannot be migrated ({type(error).__name__})") from None
    return f"{name}: {'applied ' + ', '.join(lacking) if lacking else 'up to date'}"
