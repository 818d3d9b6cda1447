"""`poller readings`: the latest values of a device, or the rates of its counters."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import key_values
from poller.cli.arguments.target_arguments import TargetOption, TargetWord, split_target
from poller.cli.commands import readings_rate, readings_series
from poller.cli.commands.readings_series import RangeOptions, SeriesChoice
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, plain
from poller.cli.output.render import Json, Limit
from poller.domain.record import instant_text
from poller.presentation import counter_units
from poller.presentation.record import readings_json
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.inventory.targets import Target
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
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="A range from then on: 2h, 30d, 2026-10-01."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="The end of the range.")
    ] = None,
    step: Annotated[
        str | None, typer.Option("--step", metavar="DURATION", help="One point for each: 5m, 1h.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY=VALUE", help="Only series with this label."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", min=1, max=200, help="The series with the highest means."),
    ] = None,
    limit: Limit = 200,
    as_json: Json = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print every point of the range as CSV.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Draw the range as an SVG file."),
    ] = None,
) -> None:
    """Print the values of the last poll of each target; with --rate the rates of its counters.

    With --since print series over a range: of raw polls, or of 5-minute or hourly roll-ups.
    """
    from poller.service.record import reading_listing

    options = RangeOptions(since, until, step, top, as_csv, picture, _label_pairs(label or ()))
    device, target = split_target(device, target)
    services = bootstrap.services()
    inventory_database.database(services)
    actor = command_actor.of_command()
    chosen = reading_listing.chosen_targets(services, actor, device, target or "")

    if _wants_series(services, chosen, options, rate):
        choice = SeriesChoice(metric or "", rate, limit)
        readings_series.show(services, device, chosen, choice, options, as_json)
    elif rate:
        from poller.db.record.stored_rates import RatesRequest

        def matching(names: Collection[str]) -> list[str]:
            if metric:
                return [name for name in names if metric in name]
            return counter_units.without_short_counters(names)

        since_ms = instant_text.parse_ms("--since", since, _now_ms()) if since else 0
        rated = reading_listing.rates(services, chosen, RatesRequest(matching, limit, since_ms))
        readings_rate.show(device, rated, bool(since_ms), as_json)
    else:
        _show(device, reading_listing.latest(services, chosen), metric or "", limit, as_json)


def _wants_series(
    services: Services, chosen: Sequence[Target], options: RangeOptions, rate: bool
) -> bool:
    """Whether points of a range are asked for. A short range of rates shows every rate."""
    if options.are_given or not options.since:
        return options.are_given
    return not rate or not readings_series.is_short(services, chosen, options)


def _label_pairs(words: Sequence[str]) -> dict[str, str]:
    try:
        return key_values.pairs(words)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(
            f"--label: {error.message}", hint="for example --label ifName=eth0"
        ) from None


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

    now_ms = _now_ms()
    rows = []
    for each in reading_listing.values(polls, metric):
        item = readings_json.item(each.target, each.at_ms, each.series, each.value, now_ms)
        rows.append(item.model_dump())
    return rows


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
