"""The database of the inventory commands: its revision, and the author of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poller import bootstrap
from poller.cli.output import render
from poller.service import command_actor

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.bootstrap import Services
    from poller.db.inventory.inventory_feed import Author


def database(services: Services | None = None, *, create: bool = False) -> Engine:
    """The engine of a database at the right revision.

    A home's private SQLite file is upgraded; a configured database is only checked. With `create`,
    for commands that add the first rows, a missing private file is made.
    """
    from poller.db import engine as sql
    from poller.db import revision

    services = services or bootstrap.services()
    engine = services.engine
    if services.settings.database_url.get_secret_value():
        revision.check(engine)
        return engine

    if create:
        sql.create_file(engine)
    found = revision.current(engine)
    if found == revision.HEAD:
        return engine

    revision.refuse_newer(found)
    from poller.db import migrate

    migrate.upgrade(engine)
    verb = "created" if found is None else f"upgraded from {found}"
    path = services.settings.home / "poller.db"
    render.note(f"{verb} the database {path} (revision {revision.HEAD})")

    return engine


def author() -> Author:
    """The author of a change by command; without Redis it prints a note."""
    from poller.service import authors

    actor = command_actor.of_command()
    return authors.author(bootstrap.services(), actor, _note_not_woken)


def _note_not_woken() -> None:
    render.note(
        "note: the scheduler was not notified (Redis is not reachable); "
        "it will read the change when it runs"
    )
