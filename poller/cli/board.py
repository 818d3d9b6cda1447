"""`poller board`: does the schedule in Redis keep its promise? Every enabled target in exactly one place."""

from __future__ import annotations

import typer

from poller import bootstrap
from poller.cli import render, summary
from poller.cli.backend import database

SHOWN = 20

app = typer.Typer(no_args_is_help=True, help="The schedule as it is in Redis.")


@app.callback()
def _group() -> None:
    """A group, although it has one command so far."""


@app.command()
def check(as_json: render.Json = False) -> None:
    """Compare the board with the inventory. Exit code 1 when a target is lost or in two places."""
    services = bootstrap.services()
    database(services)
    found = summary.verify(services)
    item = {
        **summary.places(services),
        "lost": len(found.lost),
        "doubled": len(found.doubled),
        "lost_targets": found.lost[:SHOWN],
        "doubled_targets": found.doubled[:SHOWN],
    }
    render.record("poller.board.check/1", item, as_json)
    if found.lost or found.doubled:
        raise typer.Exit(1)
