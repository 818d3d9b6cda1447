"""`poller audit`: who changed what, from where, and what it was before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from poller import bootstrap
from poller.cli.arguments import since as since_option
from poller.cli.arguments.since import Since
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, moment, plain
from poller.cli.output.render import Json, Limit
from poller.service import command_actor


def _what(item: Item) -> str:
    """`role: viewer -> admin, site: ams`: the fields, with what they were and are."""
    before, after = item["before"], item["after"]
    return ", ".join(_field(name, before, after) for name in {**before, **after})


def _field(name: str, before: Item, after: Item) -> str:
    """`role: viewer -> admin`; a bulk change counts old values: `enabled: true (12) -> false`."""
    if name in before and name in after:
        return f"{name}: {_value(before[name])} -> {_value(after[name])}"
    return f"{name}: {_value(after.get(name, before.get(name)))}"


def _value(value: object) -> str:
    if isinstance(value, Mapping) and value and all(type(each) is int for each in value.values()):
        return ", ".join(f"{each} ({number:,})" for each, number in value.items())
    return plain(value) or "none"


def _subject(item: Item) -> str:
    count = item["count"]
    return item["subject"] if count == 1 else f"{item['subject']} ({count:,})"


_COLUMNS = (
    moment("AT", "at"),
    column("WHO", "actor", fit=Fit.WHOLE),
    column("FROM", "address", spare=1),
    column("ACTION", "action", fit=Fit.WHOLE),
    Column("SUBJECT", _subject, minimum=16),
    Column("CHANGE", _what, fit=Fit.WRAP, minimum=28),
)


def command(
    actor: Annotated[str, typer.Option(help="Only acts of this user or token.")] = "",
    action: Annotated[str, typer.Option(help="Only this action, such as device.edit.")] = "",
    subject: Annotated[str, typer.Option(help="Only acts on this name.")] = "",
    since: Since = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List changes by people and programs, the newest first."""
    from poller.db.access.audit_rows import AuditQuery
    from poller.service.access import audit_log

    services = bootstrap.services()
    inventory_database.database(services)
    query = AuditQuery(actor, action, subject, since_option.instant_ms(since), limit)
    rows = audit_log.listing(services, command_actor.of_command(), query)
    items: list[dict[str, Any]] = [audit_log.document(row) for row in rows]
    render.listing("poller.audit/1", items, _COLUMNS, as_json)
    if not rows and not as_json:
        render.note("no changes recorded")
