"""`/health`: whether this process lives, and whether it can serve."""

import logging

from alembic.util.exc import CommandError
from fastapi import APIRouter
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError

from api.errors import Rejected
from api.reach import Reached
from store import migrate
from store.database import Database

LOG = logging.getLogger("tidings.api")

router = APIRouter(prefix="/health", tags=["health"])


@router.get("/live")
async def live() -> JSONResponse:
    """The process serves requests. In the event loop: threads that all wait for a database are no reason to end it."""
    return JSONResponse({"status": "live"})


@router.get("/ready")
def ready(reach: Reached) -> JSONResponse:
    """Every database answers and is up to date; 503 otherwise."""
    if not all(_usable(database) for database in reach.stores.each()):
        raise Rejected(503, "not_ready", "A database does not answer, or lacks a migration.")
    return JSONResponse({"status": "ready"})


def _usable(database: Database) -> bool:
    try:
        return not migrate.missing(database)
    except (SQLAlchemyError, CommandError) as fault:
        LOG.warning("not_ready", extra={"error_type": type(fault).__name__})
        return False
