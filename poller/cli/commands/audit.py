"""`poller audit`: who changed what, from where, and what it was before."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from poller import bootstrap
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, moment
from poller.cli.output.render import Json, Limit
from poller.domain.record import instant_text
from poller.presentation.record import audit_sentences
from poller.service import command_actor


def _what(item: Item) -> str:
    """`role: viewer -> admin, site: ams`: the fields, with what they were and are."""
    found = audit_sentences.changes(item["before"], item["after"])
    return ", ".join(change.text("->") for change in found)


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
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Only from then on: 2h, or an instant.")
    ] = "",
    until: Annotated[
        str, typer.Option("--until", metavar="TIME", help="Only before then: 2h, or an instant.")
    ] = "",
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List changes by people and programs, the newest first."""
    from poller.db.access.audit_rows import AuditQuery
    from poller.service.access import audit_log

    services = bootstrap.services()
    inventory_database.database(services)
    now_ms = time.time_ns() // 1_000_000
    query = AuditQuery(
        actor,
        action,
        subject,
        since_ms=instant_text.parse_ms("--since", since, now_ms) if since else 0,
        limit=limit,
        until_ms=instant_text.parse_ms("--until", until, now_ms) if until else None,
    )
    rows = audit_log.listing(services, command_actor.of_command(), query)
    items: list[dict[str, Any]] = [audit_log.document(row) for row in rows]
    render.listing("poller.audit/1", items, _COLUMNS, as_json)
    if not rows and not as_json:
        render.note("no changes recorded")
