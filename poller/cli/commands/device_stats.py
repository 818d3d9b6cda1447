"""`poller device stats`: the daily statistics of a device's targets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller.cli.arguments.target_arguments import device_argument
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column
from poller.cli.output.render import Json
from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.domain.record.target_day import TargetDay

_NONE = (
    "no statistics of this device yet: they are counted at 00:15 UTC for the day before, "
    "or now by: poller jobs run daily-statistics"
)


def _availability(item: Item) -> str:
    return formatting.share(item["ok"] + item["partial"], item["polls"])


def _duration(title: str, key: str, spare: int = 0) -> Column:
    """A column for milliseconds; `–` without polls."""

    def text(item: Item) -> str:
        return formatting.duration(item[key]) if item["polls"] else formatting.NOT_MEASURED

    return Column(title, text, right=True, fit=Fit.WHOLE, spare=spare)


_COLUMNS = (
    column("DAY", "day", fit=Fit.WHOLE),
    column("TARGET", "target", fit=Fit.WHOLE),
    column("POLLS", "polls", right=True, fit=Fit.WHOLE),
    Column("AVAILABLE", _availability, right=True, fit=Fit.WHOLE),
    column("FAILED", "failed", right=True, fit=Fit.WHOLE),
    column("UNPOLLED", "unpolled", right=True, fit=Fit.WHOLE, spare=1),
    _duration("MEAN", "mean_ms", spare=4),
    _duration("P50", "p50_ms", spare=3),
    _duration("P95", "p95_ms"),
    _duration("LONGEST", "max_ms", spare=2),
    _duration("LATE P95", "late_p95_ms", spare=5),
)


def stats(
    name: Annotated[str, device_argument("NAME")],
    days: Annotated[
        int, typer.Option("--days", min=1, max=3650, help="How many days back, today not counted.")
    ] = 30,
    as_json: Json = False,
) -> None:
    """Show polls, availability and durations of a device's targets by UTC day, newest first."""
    from poller.db import database_clock
    from poller.db.inventory import targets
    from poller.db.record import target_statistics
    from poller.domain.record.target_day import ended_days

    engine = inventory_database.database()
    names = {target.id: target.name for target in targets.of_device(engine, name)}
    wanted = ended_days(database_clock.now_ms(engine), days)
    found = target_statistics.listing(engine, names, wanted[0], wanted[-1])

    newest_first = sorted(found, key=lambda day: (-day.day_ms, names[day.target_id]))
    items = [_item(day, names[day.target_id]) for day in newest_first]
    render.listing("poller.device.stats/1", items, _COLUMNS, as_json)
    if not items and not as_json:
        render.note(_NONE)


def _item(day: TargetDay, target: str) -> dict[str, Any]:
    values = day._asdict()
    del values["day_ms"], values["target_id"]
    name = time.strftime("%Y-%m-%d", time.gmtime(day.day_ms / 1000))
    return {"day": name, "target": target, "availability": day.availability, **values}
