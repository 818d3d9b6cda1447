"""`poller readings`: the latest values of a device, or the rates of its counters."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import errors
from poller.cli.arguments.since import Since, instant_ms
from poller.cli.arguments.target_arguments import TargetOption, TargetWord, split_target
from poller.cli.commands import readings_rate
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, plain
from poller.cli.output.render import Json, Limit
from poller.presentation import counter_units

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.db.inventory.targets import Target
    from poller.db.record.stored_readings import Stored


def _labels(item: Item) -> str:
    return plain(item["labels"])


def _value(item: Item) -> str:
    """A value with up to six digits; a dash for NaN and infinity."""
    value = item["value"]
    if value is None:
        return "–"
    if value == int(value) and abs(value) < 2**63:
        return str(int(value))
    return f"{value:.6g}"


_COLUMNS = (
    column("TARGET", "target", fit=Fit.WHOLE),
    column("METRIC", "metric", fit=Fit.WHOLE),
    Column("LABELS", _labels, minimum=16),
    Column("VALUE", _value, right=True, fit=Fit.WHOLE),
    column("KIND", "kind", fit=Fit.WHOLE, spare=2),
    Column("AGE", readings_rate.age_text, right=True, spare=1),
)


def command(
    device: TargetWord,
    target: TargetOption = None,
    metric: Annotated[
        str | None, typer.Option(help="Only metrics whose name contains this.")
    ] = None,
    rate: Annotated[
        bool, typer.Option("--rate", help="Counters per second, each with its verdict.")
    ] = False,
    since: Since = None,
    limit: Limit = 200,
    as_json: Json = False,
) -> None:
    """Print the values of the last poll of each target; with --rate the rates of its counters."""
    from poller.db.inventory import targets

    since_ms = instant_ms(since)
    if since and not rate:
        raise errors.InvalidInput(
            "--since goes with --rate", hint=f"poller readings {device} --rate --since {since}"
        )

    device, target = split_target(device, target)
    engine = inventory_database.database()
    chosen = [targets.show(engine, device, target)] if target else targets.of_device(engine, device)

    if rate:
        from poller.db.record.stored_rates import RatesRequest

        def matching(names: Collection[str]) -> list[str]:
            if metric:
                return [name for name in names if metric in name]
            return counter_units.without_short_counters(names)

        readings_rate.show(engine, device, chosen, RatesRequest(matching, limit, since_ms), as_json)
    else:
        _show(engine, device, chosen, metric or "", limit, as_json)


def _show(
    engine: Engine, device: str, chosen: Sequence[Target], metric: str, limit: int, as_json: bool
) -> None:
    """Print the latest values, and a note for every target without any."""
    from poller.db.record import stored_readings

    ids = [target.id for target in chosen]
    latest = stored_readings.latest(engine, ids)
    now_s = time.time()

    rows: list[dict[str, Any]] = []
    unread = []
    for target in chosen:
        stored = latest.get(target.id)
        if stored is None:
            unread.append(target.name)
        else:
            rows += [row for row in _rows(target, stored, now_s) if metric in row["metric"]]

    more = {"device": device, "total": len(rows)}
    render.listing("poller.readings/1", rows[:limit], _COLUMNS, as_json, **more)
    if as_json:
        return

    if not chosen:
        render.note(f"{device} has no targets: poller target add {device} --collector snmp")
    elif not rows and not unread:
        render.note("nothing matches")

    for name in sorted(unread):
        path = f"{device}/{name}"
        text = f"nothing has been read yet; poller runs {path} shows its polls"
        render.note(f"{path}: {text}")

    if len(rows) > limit:
        total = len(rows)
        render.note(f"{total:,} values in all; more with --limit {total} or --metric NAME")


def _rows(target: Target, stored: Stored, now_s: float) -> Iterator[dict[str, Any]]:
    """The rows of a target's last poll, one per series."""
    at_s = stored.at_ms / 1000
    at = datetime.fromtimestamp(at_s, UTC)
    age = max(0.0, round(now_s - at_s, 3))
    readings = stored.readings

    for series, value in zip(readings.series.series, readings.values, strict=True):
        yield {
            "target": target.name,
            "metric": series.name,
            "labels": dict(series.labels),
            "value": value if math.isfinite(value) else None,  # JSON has no NaN and no infinity
            "kind": series.kind.value,
            "width_bits": series.width or None,
            "at": at,
            "age_seconds": age,
        }
