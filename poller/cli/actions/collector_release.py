"""Prints the release of a collector from isolation or quarantine, and waits for its polls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poller import bootstrap
from poller.cli.actions import letter_requeue
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.service.operations.collector_actions import Held

SCHEMA = "poller.collectors.release/1"


def release(name: str, wait_s: float, dry_run: bool, as_json: bool) -> None:
    """Remove the crash records of a collector and requeue its dead letters. Raises NotFound."""
    from poller.service.operations import collector_actions

    services = bootstrap.services()
    inventory_database.database(services)
    if dry_run:
        _print_plan(collector_actions.held(services, name), as_json)
        return

    def print_released(held: Held) -> None:
        if not as_json:
            for each in held.records:
                render.echo(f"released {each}: it runs like any other again")

    actor = command_actor.of_command()
    done = collector_actions.release(services, actor, name, print_released)
    item: dict[str, Any] = {"collector": name, "released": done.held.releases()}
    item |= letter_requeue.with_results(services, done.requeued, wait_s)
    if item["requeued"] or done.held.letters or as_json:
        letter_requeue.print_requeued(item, SCHEMA, as_json)
    render.warning(done.note)
    letter_requeue.exit_unless_good(item)


def _print_plan(held: Held, as_json: bool) -> None:
    from poller.service.operations import letter_actions

    count = len(held.letters)
    named = ", ".join(map(str, held.records)) or f"collector {held.collector}"
    text = f"would release {named} and requeue {letter_actions.spread_text(count)}"
    plan = {
        "collector": held.collector,
        "released": held.releases(),
        "dry_run": True,
        "letters": count,
    }
    render.changed(text, SCHEMA, plan, as_json)
