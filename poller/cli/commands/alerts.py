"""`poller alerts`: what is wrong now; acknowledge it, or tell nobody of it for a while."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from poller import bootstrap
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.since import Since, instant_ms
from poller.cli.command_tree import Listing
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, age_column, column, moment
from poller.cli.output.render import Json, Limit
from poller.domain.alerts.alert import AlertState
from poller.domain.alerts.rule import Severity
from poller.domain.inventory import target_filter
from poller.domain.record import instant_text
from poller.presentation import formatting
from poller.presentation.alerts import alert_sentences
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.service.alerts.alert_actions import AlertQuery
    from poller.service.alerts.shown_alerts import ShownAlert

app = typer.Typer(cls=Listing, help="What is wrong now, and what was: list, acknowledge, silence.")

AlertId = Annotated[int, typer.Argument(metavar="ID", min=1, help="The number of the alert.")]
AlertIds = Annotated[
    list[int], typer.Argument(metavar="ID...", min=1, help="The numbers of the alerts.")
]
SeverityOption = Annotated[
    list[Severity] | None,
    typer.Option("--severity", help="Only of this severity. Repeat for more."),
]
RuleOption = Annotated[
    list[str] | None, typer.Option("--rule", help="Only of this rule. Repeat for more.")
]


def _state(item: Item) -> str:
    words = [item["state"]]
    if item["flapping"]:
        words.append("flapping")
    if item["suppressed_by"]:
        words.append(f"by {item['suppressed_by']}")
    if item["acknowledged_by"]:
        words.append(f"acknowledged by {item['acknowledged_by']}")
    return ", ".join(words)


_COLUMNS = (
    column("ID", "id", right=True, fit=Fit.WHOLE),
    column("SEVERITY", "severity", fit=Fit.WHOLE),
    Column("STATE", _state, fit=Fit.WHOLE),
    age_column("FOR", "lasted_seconds"),
    column("RULE", "rule"),
    column("ABOUT", "about", fit=Fit.WHOLE),
    column("SITE", "site", spare=1),
    column("TEXT", "text", fit=Fit.REST),
)
_CHANGES = (
    moment("AT", "at"),
    column("WHAT", "kind", fit=Fit.WHOLE),
    column("BY", "actor", fit=Fit.WHOLE),
    column("TEXT", "text", fit=Fit.REST),
)
_TELLINGS = (
    moment("TOLD", "at"),
    column("ROUTE", "route", fit=Fit.WHOLE),
    column("RECEIVER", "receiver", fit=Fit.WHOLE),
    column("WHAT", "kind", fit=Fit.WHOLE),
    column("DELIVERY", "state", fit=Fit.WHOLE),
    column("TRIES", "attempts", right=True),
    column("ANSWER", "answer", fit=Fit.REST),
)


@app.command("list")
@expand_options
def list_(
    *,
    alert_state: Annotated[
        list[AlertState] | None,
        typer.Option("--alert-state", help="Pending, firing or resolved; else those open."),
    ] = None,
    severity: SeverityOption = None,
    rule: RuleOption = None,
    suppressed: Annotated[
        bool, typer.Option("--suppressed", help="Also those that an outage or person covers.")
    ] = False,
    selection: FilterOptions,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List open alerts, the newest first; those that something else covers are counted only."""
    from poller.service.alerts.alert_actions import AlertQuery

    query = AlertQuery(
        states=tuple(alert_state or ()),
        severities=tuple(severity or ()),
        rules=tuple(rule or ()),
        suppressed=None if suppressed else False,
        wanted=target_filter.ANY if selection.is_empty else selection.parse(),
    )
    services = bootstrap.services()
    inventory_database.database(services)
    count = _print_page(services, query, limit, as_json, "poller.alerts.list/1")
    is_narrowed = bool(alert_state or severity or rule or not selection.is_empty)
    if not as_json:
        _note_numbers(services, suppressed, nothing_matches=is_narrowed and not count)


@app.command("history")
@expand_options
def history(
    *,
    severity: SeverityOption = None,
    rule: RuleOption = None,
    since: Since = None,
    selection: FilterOptions,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List all alerts, those that are over, too, the newest first."""
    from poller.service.alerts.alert_actions import AlertQuery

    query = AlertQuery(
        states=tuple(AlertState),
        severities=tuple(severity or ()),
        rules=tuple(rule or ()),
        wanted=target_filter.ANY if selection.is_empty else selection.parse(),
        since_ms=instant_ms(since),
    )
    services = bootstrap.services()
    inventory_database.database(services)
    count = _print_page(services, query, limit, as_json, "poller.alerts.history/1")
    if not as_json and not count:
        render.note("no alert is on record, or nothing matches")


@app.command("show")
def show(alert_id: AlertId, as_json: Json = False) -> None:
    """Show one alert: what happened to it, and who was told."""
    from poller.service.alerts import alert_actions

    services = bootstrap.services()
    inventory_database.database(services)
    found = alert_actions.show(services, command_actor.of_command(), alert_id)
    alert = asdict(found.alert)
    changes = [asdict(each) for each in found.changes]
    tellings = [asdict(each) for each in found.tellings]
    if as_json:
        body = {**alert, "changes": changes, "tellings": tellings}
        render.document("poller.alerts.show/1", body)
        return

    known = {name: value for name, value in alert.items() if value not in (None, "", {})}
    render.record("poller.alerts.show/1", known, as_json=False)
    if changes:
        render.echo("\nhistory")
        render.listing("", changes, _CHANGES, as_json=False)
    if tellings:
        render.echo("\ntold")
        render.listing("", tellings, _TELLINGS, as_json=False)


@app.command("ack")
def acknowledge(
    alert_ids: AlertIds,
    note: Annotated[str, typer.Option("--note", help="What you are doing about it.")] = "",
    until: Annotated[
        str,
        typer.Option("--until", "--for", metavar="TIME", help="How long: 4h, or an instant."),
    ] = "8h",
    as_json: Json = False,
) -> None:
    """Say that you work on alerts: nobody else is called until the end that you give."""
    from poller.service.alerts import alert_actions

    services = bootstrap.services()
    inventory_database.database(services)
    actor = command_actor.of_command()
    until_ms = instant_text.ahead_ms("--until", until, time.time_ns() // 1_000_000)
    done = [alert_actions.acknowledge(services, actor, each, note, until_ms) for each in alert_ids]
    _print_changed("acknowledged", done, "poller.alerts.ack/1", as_json)


@app.command("unack")
def unacknowledge(alert_ids: AlertIds, as_json: Json = False) -> None:
    """Take the acknowledgement of alerts back."""
    from poller.service.alerts import alert_actions

    services = bootstrap.services()
    inventory_database.database(services)
    actor = command_actor.of_command()
    done = [alert_actions.unacknowledge(services, actor, each) for each in alert_ids]
    _print_changed("no longer acknowledged:", done, "poller.alerts.unack/1", as_json)


@app.command("silence")
def silence(
    alert_id: AlertId,
    until: Annotated[
        str,
        typer.Option("--until", "--for", metavar="TIME", help="How long: 4h, or an instant."),
    ],
    reason: Annotated[str, typer.Option("--reason", help="Why nobody has to know.")],
    as_json: Json = False,
) -> None:
    """Tell nobody of an alert until an end, also if it goes and comes back; monitoring goes on."""
    from poller.service.alerts import alert_actions, maintenance_actions

    services = bootstrap.services()
    inventory_database.database(services)
    now_ms = time.time_ns() // 1_000_000
    until_ms = instant_text.ahead_ms("--until", until, now_ms)
    actor = command_actor.of_command()
    made = alert_actions.silence(services, actor, alert_id, until_ms, reason)
    item = asdict(maintenance_actions.shown(made, now_ms))
    text = f"silenced alert {alert_id} until {formatting.instant(made.ends_ms)}"
    then = f"poller maintenance end {made.id}   (to end it earlier)"
    render.changed(text, "poller.maintenance/1", item, as_json, then)


def _print_page(
    services: Services, query: AlertQuery, limit: int, as_json: bool, schema: str
) -> int:
    from poller.service.alerts import alert_actions

    found = alert_actions.page(services, command_actor.of_command(), query, limit)
    items = [asdict(each) for each in found.items]
    render.listing(schema, items, _COLUMNS, as_json, next=found.next_id)
    if found.next_id is not None and not as_json:
        render.note(f"there are more: --limit {2 * limit}")
    return len(items)


def _note_numbers(services: Services, suppressed: bool, *, nothing_matches: bool) -> None:
    from poller.service.alerts import alert_actions

    numbers = alert_actions.numbers(services, command_actor.of_command())
    more = " (--suppressed lists them)" if numbers.suppressed and not suppressed else ""
    words = alert_sentences.in_words(numbers)
    if nothing_matches:
        render.note(f"no alert matches; open in all: {words or 'none'}{more}")
    else:
        render.note(f"open: {words}{more}" if words else "no alert is open")


def _print_changed(verb: str, done: Sequence[ShownAlert], schema: str, as_json: bool) -> None:
    if as_json:
        render.document(schema, {"items": [asdict(each) for each in done]})
        return
    for each in done:
        until = ""
        if each.acknowledged_until:
            until = (
                f" until {formatting.instant(round(each.acknowledged_until.timestamp() * 1000))}"
            )
        render.echo(f"{verb} alert {each.id} ({each.rule}, {each.about}){until}")
