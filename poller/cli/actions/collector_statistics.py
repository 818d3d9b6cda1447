"""Prints who uses each collector, how its polls went, and the slowest targets of one."""

from __future__ import annotations

from typing import Any

from poller import bootstrap
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column
from poller.presentation import formatting
from poller.presentation.cluster import collector_stats_json

#: Error codes that a row names.
FEW_CODES = 3


def show(name: str | None, as_json: bool) -> None:
    """Print the figures of all collectors, or of one. Raises NotFound."""
    from poller.service.cluster import collector_figures

    services = bootstrap.services()
    inventory_database.database(services)
    found = collector_figures.read(services)
    if name is not None:
        collector_figures.refuse_unknown(services, name, found)
    names = sorted(found.by_collector) if name is None else [name]
    items = [collector_stats_json.stats(each, found.of(each)).model_dump() for each in names]
    more: dict[str, Any] = {"since": formatting.utc(found.since_ms)}
    slow = None if name is None else collector_figures.slowest(services, name)
    if slow is not None:
        more["slowest"] = [collector_stats_json.slow(each).model_dump() for each in slow.rows]
        more["slowest_day"] = None if slow.day_ms is None else formatting.utc(slow.day_ms)
    render.listing(collector_stats_json.SCHEMA, items, _COLUMNS, as_json, **more)
    if as_json:
        return
    if slow is not None and slow.rows:
        render.echo("")
        render.listing(collector_stats_json.SCHEMA, more["slowest"], _SLOW, as_json=False)
        which = "of the newest polls of the fleet"
        if slow.day_ms is not None:
            which = f"of {formatting.instant(slow.day_ms)[:10]} UTC"
        render.note(f"slowest: {which}")
    render.note(f"polls since {formatting.instant(found.since_ms)}; times are estimates")


def _success(item: Item) -> str:
    return formatting.share(item["answered"], item["polls"])


def _seconds(name: str) -> Column:
    def text(item: Item) -> str:
        value = item[f"{name}_seconds"]
        return formatting.NOT_MEASURED if value is None else formatting.duration(value * 1000)

    return Column(name.upper(), text, right=True, fit=Fit.WHOLE)


def _codes(item: Item) -> str:
    """`timeout 24, auth_failed 9 and 2 more`"""
    named = list(item["codes"].items())[:FEW_CODES]
    text = ", ".join(f"{code} {formatting.exact(number)}" for code, number in named)
    more = len(item["codes"]) - len(named)
    return f"{text} and {more} more" if more else text or "none"


def _target(item: Item) -> str:
    return f"{item['device']}/{item['target']}"


_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    column("DEVICES", "devices", right=True),
    column("TARGETS", "targets", right=True),
    column("POLLS", "polls", right=True),
    Column("SUCCESS", _success, right=True, fit=Fit.WHOLE),
    *(_seconds(name) for name in ("p50", "p95", "p99")),
    Column("FAILED ATTEMPTS", _codes, fit=Fit.REST),
)
_SLOW = (
    Column("SLOWEST", _target, fit=Fit.REST),
    column("POLLS", "polls", right=True),
    *(_seconds(name) for name in ("p50", "p95", "longest")),
)
