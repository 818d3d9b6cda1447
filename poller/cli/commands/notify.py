"""`poller notify`: who is told of alerts, what was sent, and a test."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from poller import bootstrap
from poller.cli.command_tree import Listing
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, moment
from poller.cli.output.render import Json, Limit
from poller.domain.alerts.telling.delivery import DeliveryState
from poller.presentation.alerts import notifications_json, route_texts
from poller.service import command_actor


def _words(key: str, none: str = "all") -> Any:
    def text(item: Item) -> str:
        return ", ".join(item[key]) or none

    return text


def _state_style(item: Item) -> str:
    return {"sent": "green", "waiting": "yellow", "dead": "red"}.get(item["state"], "")


def _last(item: Item) -> str:
    return str(item["problem"] or item["last_answer"])


_RECEIVERS = (
    column("RECEIVER", "name", fit=Fit.WHOLE),
    column("KIND", "kind", fit=Fit.WHOLE),
    Column("ROUTES", _words("routes", "none"), spare=1),
    column("WAITING", "waiting", right=True),
    column("DEAD", "dead", right=True),
    moment("LAST", "last_at"),
    Column("ANSWER", _last, fit=Fit.REST),
)
_ROUTES = (
    column("ROUTE", "name", fit=Fit.WHOLE),
    Column("TAKES", route_texts.takes, fit=Fit.WRAP),
    Column("TELLS", _words("receivers"), fit=Fit.WRAP),
    column("REPEAT", "repeat"),
    Column("ESCALATES TO", _words("escalate_to", ""), spare=1),
    moment("QUIET UNTIL", "quiet_until", spare=1),
)
_DELIVERIES = (
    column("ID", "id", right=True, fit=Fit.WHOLE),
    moment("MADE", "created"),
    column("ROUTE", "route"),
    column("RECEIVER", "receiver"),
    Column("STATE", lambda item: str(item["state"]), fit=Fit.WHOLE, style=_state_style),
    column("TRIES", "attempts", right=True),
    column("NOTICE", "subject", fit=Fit.WRAP),
    column("ANSWER", "answer", fit=Fit.REST),
)
_TESTED = (
    column("RECEIVER", "receiver", fit=Fit.WHOLE),
    column("KIND", "kind"),
    column("TOOK IT", "ok"),
    column("SECONDS", "seconds", right=True),
    Column("ANSWER", lambda item: str(item["answer"] or item["error"]), fit=Fit.WRAP),
    column("TRY", "hint", fit=Fit.WRAP),
)

app = typer.Typer(cls=Listing, help="Who is told of alerts: receivers, routes, deliveries, a test.")


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List receivers with what waits and failed, and routes with what they take."""
    from poller.service.alerts import shown_notifications

    services = bootstrap.services()
    inventory_database.database(services)
    found = shown_notifications.listing(services)
    receivers = [each.model_dump() for each in found.receivers]
    routes = [each.model_dump() for each in found.routes]
    if as_json:
        body = {"receivers": receivers, "routes": routes}
        render.document(notifications_json.SCHEMA, body)
        return
    if not receivers:
        render.note("nobody is told: poller.toml has no table [receiver.NAME]")
        return
    render.listing(notifications_json.SCHEMA, receivers, _RECEIVERS, as_json=False)
    render.echo("")
    if not routes:
        render.note("nobody is told: poller.toml has no table [route.NAME]")
        return
    render.listing(notifications_json.SCHEMA, routes, _ROUTES, as_json=False)


@app.command("test")
def send_test(
    name: Annotated[str, typer.Argument(metavar="ROUTE", help="A route of poller.toml.")],
    as_json: Json = False,
) -> None:
    """Send a test to every receiver of a route from here, and print what each answered."""
    from poller.service.alerts import notify_actions

    services = bootstrap.services()
    inventory_database.database(services)
    result = notify_actions.send_test(services, command_actor.of_command(), name)
    render.warning(result.note)
    items = [each.model_dump() for each in result.receivers]
    if as_json:
        render.document(notifications_json.TEST_SCHEMA, result.model_dump())
    else:
        render.echo(f"sent: {result.subject}")
        render.listing(notifications_json.TEST_SCHEMA, items, _TESTED, as_json=False)
    if not result.ok:
        raise typer.Exit(1)


@app.command("deliveries")
def deliveries(
    delivery_id: Annotated[
        int | None, typer.Argument(metavar="ID", help="Only this one, with its text.")
    ] = None,
    state: Annotated[DeliveryState | None, typer.Option(help="Only in this state.")] = None,
    route: Annotated[str, typer.Option(help="Only of this route.")] = "",
    receiver: Annotated[str, typer.Option(help="Only to this receiver.")] = "",
    alert: Annotated[int | None, typer.Option(help="Only those that tell of this alert.")] = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List what was sent and what waits, the newest first."""
    from poller.db.alerts.delivery_listing import DeliveryFilter
    from poller.service.alerts import shown_notifications

    services = bootstrap.services()
    inventory_database.database(services)
    if delivery_id is not None:
        found = shown_notifications.delivery(services, delivery_id)
        item = notifications_json.delivery_details(found).model_dump()
        render.record(notifications_json.DELIVERY_SCHEMA, item, as_json)
        return
    wanted = DeliveryFilter(state, route, receiver, alert)
    rows = shown_notifications.deliveries(services, wanted, limit)
    items = [each.model_dump() for each in notifications_json.delivery_items(rows)]
    render.listing(notifications_json.DELIVERIES_SCHEMA, items, _DELIVERIES, as_json)
    if not items and not as_json:
        render.note("no deliveries")


@app.command("retry")
def retry(
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="[ID]...", help="Ids of dead deliveries.")
    ] = None,
    receiver: Annotated[str, typer.Option(help="All dead ones of this receiver.")] = "",
    as_json: Json = False,
) -> None:
    """Try dead deliveries again: those of some ids, or all of a receiver."""
    from poller.service.alerts import notify_actions

    services = bootstrap.services()
    inventory_database.database(services)
    actor = command_actor.of_command()
    result = notify_actions.retry(services, actor, ids or (), receiver)
    number = len(result.ids)
    noun = "delivery is" if number == 1 else "deliveries are"
    text = f"{number} {noun} tried again"
    render.changed(text, notifications_json.RETRY_SCHEMA, result.model_dump(), as_json)
