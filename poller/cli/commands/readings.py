"""`poller readings`: the latest values of a device, or the rates of its counters."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import errors
from poller.cli.arguments import completion
from poller.cli.arguments.since import Since, instant_ms
from poller.cli.arguments.target_arguments import place
from poller.cli.commands import readings_rate
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, column, plain
from poller.cli.output.render import Json
from poller.domain.inventory import duration

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.db.inventory.targets import Target
    from poller.db.record.stored_readings import Stored

_COLUMNS = (
    column("TARGET", "target", fit=Fit.WHOLE),
    column("METRIC", "metric", fit=Fit.WHOLE),
    Column("LABELS", lambda item: plain(item["labels"]), least=16),
    Column("VALUE", lambda item: _number(item["value"]), right=True, fit=Fit.WHOLE),
    column("KIND", "kind", fit=Fit.WHOLE, spare=2),
    Column(
        "AGE",
        lambda item: duration.format_ms(round(item["age_seconds"]) * 1000),
        right=True,
        spare=1,
    ),
)


def command(
    device: Annotated[
        str,
        typer.Argument(
            metavar="DEVICE[/TARGET]", help="The device's name.", autocompletion=completion.devices
        ),
    ],
    target: Annotated[
        str | None, typer.Option(help="Only this target of it.", autocompletion=completion.targets)
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Only metrics whose name contains this.")
    ] = None,
    rate: Annotated[
        bool, typer.Option("--rate", help="Counters per second, each with its verdict.")
    ] = False,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 200,
    as_json: Json = False,
) -> None:
    """Print the values of the last poll of each target; with --rate what its counters count per second."""
    from poller.db.inventory import targets

    if since and not rate:
        raise errors.InvalidInput(
            "--since goes with --rate", hint=f"poller readings {device} --rate --since {since}"
        )
    since_ms = instant_ms(since)
    device, target = place(device, target)
    engine = inventory_database.database()
    chosen = [targets.show(engine, device, target)] if target else targets.of_device(engine, device)
    if rate:
        from poller.db.record.stored_rates import Asked

        wanted = metric or ""
        asked = Asked(lambda names: [name for name in names if wanted in name], limit, since_ms)
        readings_rate.show(engine, device, chosen, asked, as_json)
    else:
        _show(engine, device, chosen, metric, limit, as_json)


def _show(
    engine: Engine,
    device: str,
    chosen: Sequence[Target],
    metric: str | None,
    limit: int,
    as_json: bool,
) -> None:
    from poller.db.record import stored_readings

    latest = stored_readings.latest(engine, [each.id for each in chosen])
    rows = [
        row
        for each in chosen
        if each.id in latest
        for row in _rows(each, latest[each.id], time.time())
    ]
    rows = [row for row in rows if metric is None or metric in row["metric"]]
    more = {"device": device, "total": len(rows)}
    render.listing("poller.readings/1", rows[:limit], _COLUMNS, as_json, **more)
    if not as_json:
        _explain(
            device,
            chosen,
            {each.name for each in chosen if each.id not in latest},
            len(rows),
            limit,
        )


def _rows(target: Target, stored: Stored, now: float) -> Iterator[dict[str, Any]]:
    at = datetime.fromtimestamp(stored.at_ms / 1000, UTC)
    age = max(0.0, round(now - stored.at_ms / 1000, 3))
    for series, value in zip(stored.readings.series.series, stored.readings.values, strict=True):
        yield {
            "target": target.name,
            "metric": series.name,
            "labels": dict(series.labels),
            "value": value if math.isfinite(value) else None,  # JSON has no other word for it
            "kind": series.kind.value,
            "width_bits": series.width or None,
            "at": at,
            "age_seconds": age,
        }


def _explain(
    device: str, targets: Sequence[Target], unread: set[str], rows: int, limit: int
) -> None:
    if not targets:
        render.note(f"{device} has no targets: poller target add {device} --collector snmp")
    elif not rows and not unread:
        render.note("nothing matches")
    for name in sorted(unread):
        render.note(
            f"{device}/{name}: nothing has been read yet; poller runs {device}/{name} tells how its polls went"
        )
    if rows > limit:
        render.note(f"{rows:,} values in all; more with --limit {rows} or --metric NAME")


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return str(int(value)) if value == int(value) and abs(value) < 2**63 else f"{value:.6g}"
