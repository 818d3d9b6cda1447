"""`poller maintenance`: until when nobody is told of what matches. Monitoring goes on."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from poller import bootstrap, errors
from poller.cli.arguments import since
from poller.cli.arguments.filter_options import Where
from poller.cli.command_tree import Listing
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, moment
from poller.cli.output.render import Json, Limit
from poller.domain.record import instant_text
from poller.service import command_actor

app = typer.Typer(
    cls=Listing, help="Until when nobody is told of what matches. Each has an end and a reason."
)

MaintenanceId = Annotated[
    int, typer.Argument(metavar="ID", min=1, help="The number of the maintenance.")
]


def _what(item: Item) -> str:
    rule = f"rule {item['rule']}" if item["rule"] else ""
    silenced = item["alert"].partition("|")[0]
    alert = f"one alert of the rule {silenced}" if silenced else ""
    return " ".join(part for part in (item["where"], rule, alert) if part)


def _again(item: Item) -> str:
    return f"{item['cron']} {item['time_zone']}" if item["cron"] else ""


_COLUMNS = (
    column("ID", "id", right=True, fit=Fit.WHOLE),
    column("STATE", "state", fit=Fit.WHOLE),
    Column("WHAT", _what, fit=Fit.WHOLE),
    moment("ACTIVE UNTIL", "active_until"),
    moment("NEXT", "next_start", spare=1),
    Column("RECURS", _again, fit=Fit.WHOLE, spare=2),
    moment("END", "end"),
    column("BY", "created_by", spare=3),
    column("REASON", "reason", fit=Fit.REST),
)


@app.command("list")
def list_(
    over: Annotated[bool, typer.Option("--over", help="Also those that are over.")] = False,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List maintenances and silences, the newest first."""
    from poller.service.alerts import maintenance_actions

    services = bootstrap.services()
    inventory_database.database(services)
    found = maintenance_actions.page(services, command_actor.of_command(), over, limit)
    items = [asdict(each) for each in found.items]
    render.listing("poller.maintenance.list/1", items, _COLUMNS, as_json, next=found.next_id)
    if as_json:
        return
    if not items:
        render.note("no maintenance; poller maintenance list --over shows those that are over")
    elif found.next_id is not None:
        render.note(f"there are more: --limit {2 * limit}")


@app.command("add")
def add(
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who look later.")],
    until: Annotated[
        str,
        typer.Option(
            "--until",
            "--for",
            metavar="TIME",
            help="The end: 2h, or an instant. If it recurs: when it does no more.",
        ),
    ],
    where: Where = None,
    rule: Annotated[str, typer.Option("--rule", help="Only alerts of this rule.")] = "",
    start: Annotated[
        str, typer.Option("--start", metavar="TIME", help="In 30m, or an instant; else now.")
    ] = "",
    cron: Annotated[
        str, typer.Option("--cron", help="It recurs: minute, hour, day, month, weekday.")
    ] = "",
    time_zone: Annotated[
        str, typer.Option("--time-zone", help="Of the recurrence, such as Europe/Berlin.")
    ] = "UTC",
    length: Annotated[
        str, typer.Option("--length", metavar="DURATION", help="Of one recurrence: 2h.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Tell nobody of alerts that match, until an end. Ends of alerts are told all the same."""
    from poller.service.alerts import maintenance_actions
    from poller.service.alerts.maintenance_actions import MaintenanceDraft

    if where is not None and not where.strip():
        raise errors.InvalidInput("--where: the filter is empty", hint="leave it out, or write one")
    now_ms = time.time_ns() // 1_000_000
    draft = MaintenanceDraft(
        where=where or "",
        rule=rule,
        reason=reason,
        starts_ms=instant_text.ahead_ms("--start", start, now_ms) if start else None,
        ends_ms=instant_text.ahead_ms("--until", until, now_ms),
        cron=cron,
        time_zone=time_zone,
        length_ms=since.length_ms("--length", length) if length else 0,
    )
    services = bootstrap.services()
    inventory_database.database(services)
    item = asdict(maintenance_actions.add(services, command_actor.of_command(), draft))
    text = f"added maintenance {item['id']}: {_what(item)}"
    then = f"poller maintenance end {item['id']}   (to end it earlier)"
    render.changed(text, "poller.maintenance/1", item, as_json, then)


@app.command("show")
def show(maintenance_id: MaintenanceId, as_json: Json = False) -> None:
    """Show one maintenance."""
    from poller.service.alerts import maintenance_actions

    services = bootstrap.services()
    inventory_database.database(services)
    found = maintenance_actions.show(services, command_actor.of_command(), maintenance_id)
    render.record("poller.maintenance/1", asdict(found), as_json)


@app.command("end")
def end(maintenance_id: MaintenanceId, as_json: Json = False) -> None:
    """End a maintenance or a silence now."""
    from poller.service.alerts import maintenance_actions

    services = bootstrap.services()
    inventory_database.database(services)
    done = maintenance_actions.end(services, command_actor.of_command(), maintenance_id)
    text = f"ended maintenance {maintenance_id}"
    render.changed(text, "poller.maintenance/1", asdict(done), as_json)
