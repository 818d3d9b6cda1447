"""`poller db`: the revision of the database's schema, and its upgrade."""

from __future__ import annotations

import typer

from poller import bootstrap
from poller.cli.output import render
from poller.cli.output.render import Json

app = typer.Typer(no_args_is_help=True, help="The database's schema.")


@app.command("upgrade")
def upgrade(as_json: Json = False) -> None:
    """Create or upgrade all tables. Safe to repeat, and to run on several machines at once."""
    from poller.db import migrate

    before, after = migrate.upgrade(bootstrap.services().engine)
    if before == after:
        text = f"already at revision {after}"
    else:
        text = f"upgraded from {before or 'nothing'} to revision {after}"

    render.changed(text, "poller.db.upgrade/1", {"before": before, "after": after}, as_json)


@app.command("current")
def current(as_json: Json = False) -> None:
    """Show the database's revision and the one this program needs. Exit code 1 when they differ."""
    from poller.db import revision

    found = revision.current(bootstrap.services().engine)
    up_to_date = found == revision.HEAD
    body = {"revision": found, "needed": revision.HEAD, "up_to_date": up_to_date}
    render.record("poller.db.current/1", body, as_json)

    if not up_to_date:
        raise typer.Exit(1)
