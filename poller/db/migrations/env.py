"""The Alembic environment. `poller.db.migrate` passes the connection and holds the lock."""

from __future__ import annotations

from alembic import context

from poller.db.alerts import alert_tables
from poller.db.tables import metadata

assert alert_tables.alerts.metadata is metadata  # the import adds its tables

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    compare_type=True,
    # SQLite cannot alter most things in place: a migration copies the table instead.
    render_as_batch=connection.dialect.name == "sqlite",
    transactional_ddl=True,
)
# `migrate` has begun the transaction and commits it.
context.run_migrations()
