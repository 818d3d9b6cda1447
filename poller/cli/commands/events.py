"""`poller events`: past events from SQL, or new ones from the stream until Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.target_arguments import split_target
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, instant, moment, one_line
from poller.domain.record import instant_text
from poller.domain.record.event_kinds import Event, EventFilter, Kind
from poller.presentation import event_json
from poller.service import command_actor
from poller.service.record import event_listing
from poller.service.record.event_listing import EventQuery
from poller.state.cluster import event_stream

if TYPE_CHECKING:
    from poller.bootstrap import Services

LIMIT = 50
PAGE = 1_000
#: Past events that --follow prints before the first new one.
BACKLOG = 10
#: Time one read of the stream waits for new events; less than the client's timeout.
WAIT_MS = 1_000
RETRY_S = 0.5


def _subject(item: Item) -> str:
    """`DEVICE/TARGET`, `DEVICE`, or an empty text."""
    names = (item["device"], item["target"])
    return "/".join(name for name in names if name)


_COLUMNS = (
    moment("AT", "at"),
    column("KIND", "kind", fit=Fit.WHOLE),
    Column("WHAT", _subject, fit=Fit.WHOLE),
    column("MESSAGE", "message", fit=Fit.REST),
)


@expand_options
def command(
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print events as they happen.")
    ] = False,
    kind: Annotated[
        list[Kind] | None, typer.Option(help="Only events of this kind. Repeat for more.")
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="DEVICE[/TARGET]",
            help="Only of this device.",
            autocompletion=completion.devices,
            show_default=False,
        ),
    ] = "",
    selection: FilterOptions,
    bad: Annotated[bool, typer.Option("--bad", help="Only changes for the worse.")] = False,
    since: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Only newer than this: 90s, 2h, 1d, or an instant.",
            show_default=False,
        ),
    ] = "",
    until: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Only before this instant, without --follow.",
            show_default=False,
        ),
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="Maximum number of events, without --follow.",
            show_default=str(LIMIT),
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; with --follow, one per line.")
    ] = False,
) -> None:
    """Print events of devices, breakers, dead letters, leaders, workers and jobs, newest first."""
    if follow and limit is not None:
        raise errors.InvalidInput(
            "--limit does not go with --follow", hint=f"poller events --limit {limit}"
        )

    if follow and until:
        raise errors.InvalidInput("--until does not go with --follow", hint="leave out one of them")

    device, target = split_target(device)
    query = EventQuery(
        kinds=tuple(kind or ()),
        device=device,
        target=target or "",
        wanted=selection.parse(),
        since_ms=_instant_ms("--since", since),
        until_ms=_instant_ms("--until", until),
        bad=bad,
    )
    services = bootstrap.services()
    if not (follow and selection.is_empty):  # --follow reads Redis; SQL may be away
        inventory_database.database(services)
    chosen = event_listing.event_filter(services, command_actor.of_command(), query)

    if follow:
        with contextlib.suppress(errors.StoreError):
            event_listing.refuse_unknown(services, chosen)
        _follow(services, chosen, as_json)
        return

    found = event_listing.newest(services, chosen, limit or LIMIT)
    if found.stream_error:
        render.note("note: Redis is not reachable; events of the last seconds may be missing")
    items = [_item(each.event) for each in found.events]
    render.listing("poller.events/1", items, _COLUMNS, as_json)
    if not items and not as_json:
        render.note("no event is on record, or nothing matches")


def _instant_ms(option: str, text: str) -> int:
    """The instant of an option; 0 for none. Raises InvalidInput."""
    return instant_text.parse_ms(option, text, time.time_ns() // 1_000_000) if text else 0


def _item(event: Event) -> dict[str, Any]:
    """The JSON fields of an event, its instant as a datetime."""
    return {**event_json.item(event), "at": instant(event.at_ms)}


def _follow(services: Services, chosen: EventFilter, as_json: bool) -> None:
    """Print events for ever.

    While Redis is away this waits; it misses no event that Redis stores.
    """
    client = services.redis
    keys = services.keys
    backlog = services.settings.events_length if chosen.since_ms else BACKLOG
    newest = event_stream.newest(client, keys, backlog)
    last_id = newest[0].id if newest else event_stream.BEGINNING
    _print((entry.event for entry in reversed(newest)), chosen, as_json)

    away = False
    while True:
        try:
            entries = event_stream.after(client, keys, last_id, PAGE, WAIT_MS)
        except errors.StoreUnavailable as error:
            if not away:
                render.note(f"note: {error.message}; waiting for it")
            away = True
            time.sleep(RETRY_S)
            continue

        if away:
            render.note("note: Redis is back")
            away = False

        if entries:
            last_id = entries[-1].id

        _print((entry.event for entry in entries), chosen, as_json)


def _print(events: Iterable[Event | None], chosen: EventFilter, as_json: bool) -> None:
    for event in events:
        if event is not None and chosen.accepts(event):
            render.echo(_line(event, as_json))
    sys.stdout.flush()


def _line(event: Event, as_json: bool) -> str:
    """One event as a line: JSON, or words with the kind in a fixed width."""
    item = event_json.item(event)
    if as_json:
        document = {"schema": "poller.event/1", **item}
        return json.dumps(document, ensure_ascii=False, default=str)
    words = (item["at"], f"{event.kind.value:<22}", _subject(item), event.message)
    return one_line("  ".join(word for word in words if word))
