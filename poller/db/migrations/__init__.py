"""The migrations of the schema, run by `poller.db.migrate` without an alembic.ini."""
