"""`poller report`: figures of a month, as a table, CSV or JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import option_group
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column
from poller.cli.output.render import Json
from poller.presentation import formatting
from poller.presentation.history import traffic_json
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.presentation.history.traffic_json import TrafficItem
    from poller.service.history.traffic_report import Month

app = typer.Typer(no_args_is_help=True, help="Figures of a month.")


@app.callback()
def report() -> None:
    """Figures of a month."""


def _bits(title: str, key: str, spare: int = 0) -> Column:
    def text(item: Item) -> str:
        number = item[key]
        return formatting.NOT_MEASURED if number is None else formatting.bits(number)

    return Column(title, text, right=True, fit=Fit.WHOLE, spare=spare)


def _used(item: Item) -> str:
    share = item["p95_utilisation"]
    return formatting.NOT_MEASURED if share is None else f"{100 * share:.1f} %"


def _total(item: Item) -> str:
    return formatting.size(round(item["total_octets"]))


def _minutes(title: str, key: str, spare: int = 0) -> Column:
    def text(item: Item) -> str:
        return formatting.exact(round(item[key]))

    return Column(title, text, right=True, fit=Fit.WHOLE, spare=spare)


_COLUMNS = (
    column("DEVICE", "device", fit=Fit.WHOLE),
    column("TARGET", "target", spare=5),
    column("INTERFACE", "interface", fit=Fit.WHOLE),
    column("WAY", "direction", fit=Fit.WHOLE),
    _bits("P95", "p95_bits_per_second"),
    _bits("MEAN", "mean_bits_per_second", spare=2),
    _bits("MAX", "max_bits_per_second", spare=1),
    Column("TOTAL", _total, right=True, fit=Fit.WHOLE),
    Column("P95 USED", _used, right=True, fit=Fit.WHOLE, spare=3),
    _minutes("UNKNOWN MIN", "unknown_minutes"),
    _minutes("AVERAGED MIN", "averaged_minutes", spare=4),
)


@app.command("traffic")
@option_group.expand_options
def traffic(
    month: Annotated[str, typer.Option("--month", metavar="MONTH", help="In UTC: 2026-10.")],
    wanted: FilterOptions,
    device: Annotated[str | None, typer.Option("--device", help="Only of this device.")] = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Print the traffic of every interface: 95th percentile, mean, maximum, total, unknown time."""
    from poller.service.history import traffic_report

    if as_json and as_csv:
        raise errors.InvalidInput("--json and --csv are two forms", hint="choose one of them")
    now_ms = time.time_ns() // 1_000_000
    asked = traffic_report.month(month, now_ms)
    services = bootstrap.services()
    inventory_database.database(services)
    rows = _rows(services, asked, wanted, device or "", now_ms)
    if as_csv:
        for text in traffic_json.csv_lines(rows):
            sys.stdout.write(text)
        return
    found = [row.model_dump() for row in rows]
    how = traffic_report.plan(services, None, asked, now_ms)
    more: dict[str, Any] = {"month": asked.name, "why": how.sentence()}
    render.listing(traffic_json.SCHEMA, found, _COLUMNS, as_json, **more)
    if not as_json:
        render.note(how.sentence())
        if not found:
            render.note("no interface has traffic of that month")


def _rows(
    services: Services, asked: Month, wanted: FilterOptions, device: str, now_ms: int
) -> Iterator[TrafficItem]:
    from poller.service.history import traffic_report

    actor = command_actor.of_command()
    chosen = traffic_report.chosen(services, actor, wanted.parse(), device)
    for each in traffic_report.traffic(services, chosen, asked, now_ms):
        for interface in each.interfaces:
            resolution = each.plan.resolution.value
            yield from traffic_json.items(
                each.target.device, each.target.name, resolution, interface
            )
