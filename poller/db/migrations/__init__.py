"""The history of the schema, run by `poller.db.migrate`; no alembic.ini is needed."""
