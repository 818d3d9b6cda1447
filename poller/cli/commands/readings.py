"""`poller readings`: the latest values of a device, or the rates of its counters."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments.since import Since, instant_ms
from poller.cli.arguments.target_arguments import TargetOption, TargetWord, split_target
from poller.cli.commands import readings_rate
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, plain
from poller.cli.output.render import Json, Limit
from poller.presentation import counter_units
from poller.presentation.record import readings_json
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.service.record.reading_listing import TargetPoll


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
    from poller.service.record import reading_listing

    since_ms = instant_ms(since)
    if since and not rate:
        raise errors.InvalidInput(
            "--since goes with --rate", hint=f"poller readings {device} --rate --since {since}"
        )

    device, target = split_target(device, target)
    services = bootstrap.services()
    inventory_database.database(services)
    actor = command_actor.of_command()
    chosen = reading_listing.chosen_targets(services, actor, device, target or "")

    if rate:
        from poller.db.record.stored_rates import RatesRequest

        def matching(names: Collection[str]) -> list[str]:
            if metric:
                return [name for name in names if metric in name]
            return counter_units.without_short_counters(names)

        rated = reading_listing.rates(services, chosen, RatesRequest(matching, limit, since_ms))
        readings_rate.show(device, rated, bool(since_ms), as_json)
    else:
        _show(device, reading_listing.latest(services, chosen), metric or "", limit, as_json)


def _show(device: str, polls: Sequence[TargetPoll], metric: str, limit: int, as_json: bool) -> None:
    """Print the latest values, and a note for every target without any."""
    rows = _rows(polls, metric)
    more = {"device": device, "total": len(rows)}
    render.listing(readings_json.SCHEMA, rows[:limit], _COLUMNS, as_json, **more)
    if as_json:
        return

    unread = [poll.target.name for poll in polls if poll.stored is None]
    if not polls:
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


def _rows(polls: Sequence[TargetPoll], metric: str) -> list[dict[str, Any]]:
    """The JSON fields of the values, one row per series."""
    from poller.service.record import reading_listing

    now_ms = time.time_ns() // 1_000_000
    rows = []
    for each in reading_listing.values(polls, metric):
        item = readings_json.item(each.target, each.at_ms, each.series, each.value, now_ms)
        rows.append(item.model_dump())
    return rows
