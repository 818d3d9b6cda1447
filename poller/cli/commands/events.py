"""`poller events`: what changed, from SQL; or what changes now, from the stream, until Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion
from poller.cli.arguments.since import Since, instant_ms
from poller.cli.arguments.target_arguments import place
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, column, moment, one_line, rfc3339
from poller.domain.record.event_kinds import Event, Kind, Wanted
from poller.state.cluster import event_stream as stream

if TYPE_CHECKING:
    from poller.bootstrap import Services

LIMIT = 50
PAGE = 1_000
#: How many are shown before the first new one.
BACKLOG = 10
#: How long one look waits for something new; less than the client's patience.
WAIT_MS = 1_000
TRY_AGAIN_S = 0.5


def command(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print what happens, as it happens.")
    ] = False,
    kind: Annotated[
        list[Kind] | None, typer.Option(help="Only these; may be given more than once.")
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
    since: Since = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, max=100_000, help="Without --follow: at most so many.", show_default=str(LIMIT)
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; with --follow, one a line.")
    ] = False,
) -> None:
    """Devices down and back, breakers, dead letters, leaders, workers: the newest first."""
    if follow and limit is not None:
        raise errors.InvalidInput(
            "--limit does not go with --follow", hint=f"poller events --limit {limit}"
        )
    name, target = place(device)
    wanted = Wanted(tuple(kind or ()), name, instant_ms(since), target or "")
    services = bootstrap.services()
    if follow:
        with contextlib.suppress(errors.StoreError):  # what is followed is in Redis
            _refuse_unknown(services, wanted)
        _follow(services, wanted, as_json)
        return
    found = _recent(services, wanted, limit or LIMIT)
    if not found:
        _refuse_unknown(services, wanted)
    render.listing("poller.events/1", [item(event) for event in found], _COLUMNS, as_json)
    if not found and not as_json:
        render.note("no event is on record, or nothing matches")


def item(event: Event) -> dict[str, Any]:
    """An event as programs read it."""
    return {
        "at": datetime.fromtimestamp(event.at_ms / 1000, UTC),
        "kind": event.kind.value,
        "device": event.device,
        "target": event.target,
        "device_id": event.device_id,
        "target_id": event.target_id,
        "message": event.message,
        "data": dict(event.data),
    }


def _refuse_unknown(services: Services, wanted: Wanted) -> None:
    """A name that is neither of today nor of any event."""
    from poller.db.inventory import devices, targets

    if not wanted.device or _recent(
        services, Wanted(device=wanted.device, target=wanted.target), 1
    ):
        return
    if wanted.target:
        targets.show(inventory_database.database(services), wanted.device, wanted.target)
    else:
        devices.show(inventory_database.database(services), wanted.device)


def _recent(services: Services, wanted: Wanted, limit: int) -> list[Event]:
    """From SQL, and from the stream what the leader has not brought there yet."""
    from poller.db.record import event_rows as table

    engine = inventory_database.database(services)
    fresh = _unrecorded(services, wanted)
    found = [event for event in table.recent(engine, wanted, limit) if event not in fresh]
    return sorted([*fresh, *found], key=lambda event: -event.at_ms)[:limit]


def _unrecorded(services: Services, wanted: Wanted) -> list[Event]:
    client, keys = services.redis, services.keys
    try:
        entries = stream.after(client, keys, stream.recorded(client, keys), PAGE)
    except errors.StoreError:
        render.note(
            "note: Redis is not reachable; what happened in the last moments may be missing"
        )
        return []
    return [
        entry.event for entry in reversed(entries) if entry.event and wanted.accepts(entry.event)
    ]


def _follow(services: Services, wanted: Wanted, as_json: bool) -> None:
    """For ever. A server that goes away is waited for; nothing that it kept is missed."""
    client, keys = services.redis, services.keys
    count = services.settings.events_length if wanted.since_ms else BACKLOG
    shown = stream.newest(client, keys, count)
    last = shown[0].id if shown else stream.BEGINNING
    _print((entry.event for entry in reversed(shown)), wanted, as_json)
    away = False
    while True:
        try:
            entries = stream.after(client, keys, last, PAGE, WAIT_MS)
        except errors.StoreUnavailable as error:
            if not away:
                render.note(f"note: {error.message}; waiting for it")
            away = True
            time.sleep(TRY_AGAIN_S)
            continue
        if away:
            render.note("note: Redis is back")
            away = False
        last = entries[-1].id if entries else last
        _print((entry.event for entry in entries), wanted, as_json)


def _print(happened: Iterable[Event | None], wanted: Wanted, as_json: bool) -> None:
    for event in happened:
        if event is not None and wanted.accepts(event):
            render.echo(_line(event, as_json))
    sys.stdout.flush()


def _line(event: Event, as_json: bool) -> str:
    fields = item(event)
    if as_json:
        whole = {"schema": "poller.event/1", **fields, "at": rfc3339(fields["at"])}
        return json.dumps(whole, ensure_ascii=False, default=str)
    words = (rfc3339(fields["at"]), f"{event.kind.value:<22}", _what(fields), event.message)
    return one_line("  ".join(word for word in words if word))


def _what(fields: Any) -> str:
    return "/".join(name for name in (fields["device"], fields["target"]) if name)


_COLUMNS = (
    moment("AT", "at"),
    column("KIND", "kind", fit=Fit.WHOLE),
    Column("WHAT", _what, fit=Fit.WHOLE),
    column("MESSAGE", "message", fit=Fit.REST),
)
