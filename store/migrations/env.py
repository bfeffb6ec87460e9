"""Alembic's entry: runs the migrations on the connection that `store.migrate` hands in."""

from alembic import context

from store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
