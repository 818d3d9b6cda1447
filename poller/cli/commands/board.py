"""`poller board`: checks and repairs the schedule in Redis."""

from __future__ import annotations

from dataclasses import asdict

import typer

from poller import bootstrap
from poller.cli.inventory.inventory_database import database
from poller.cli.output import render
from poller.service import command_actor

app = typer.Typer(no_args_is_help=True, help="The schedule as it is in Redis.")


@app.command()
def check(as_json: render.Json = False) -> None:
    """Compare the board with the inventory. Exits with 1 when a target is misplaced."""
    from poller.service.operations import board_actions

    services = bootstrap.services()
    database(services)
    found = board_actions.check(services)
    item = asdict(found)
    del item["is_sound"]
    render.record("poller.board.check/1", item, as_json)

    if found.is_sound:
        return
    if not as_json:
        render.note("repair it with: poller board repair")

    raise typer.Exit(1)


@app.command()
def repair(as_json: render.Json = False) -> None:
    """Put every target into exactly one place and print what was wrong.

    Safe to run while polling.
    """
    from poller.service.operations import board_actions

    services = bootstrap.services()
    database(services)
    services.configure_logs()  # the event's log line goes to stderr
    done = board_actions.repair(services, command_actor.of_command())
    render.record("poller.board.repair/1", {**done.counts, **done.samples}, as_json)
    render.warning(done.note)
