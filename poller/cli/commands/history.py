"""`poller history`: how much room the history of readings takes."""

from __future__ import annotations

from typing import Annotated

import typer

from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column
from poller.cli.output.render import Json
from poller.presentation import formatting
from poller.presentation.history import size_json

app = typer.Typer(no_args_is_help=True, help="The history of readings.")

_ESTIMATED = (
    "note: a part marked with ~ has no rows yet; its size is that of a simulated day of interface "
    "counters"
)


@app.callback()
def history() -> None:
    """The history of readings."""


def _kept(item: Item) -> str:
    days = item["kept_days"]
    if days is None:
        return ""
    return f"{days:g} d" if days >= 1 else f"{days * 24:.1f} h"


def _sample(item: Item) -> str:
    amount = item["bytes_per_sample"]
    return "" if amount is None else f"{amount:.2f}"


def _bytes(key: str) -> Column:
    def text(item: Item) -> str:
        mark = "" if item["measured"] else "~"
        return mark + formatting.size(round(item[key]))

    title = {"bytes": "SIZE", "bytes_per_device_day": "A DEVICE AND DAY"}[key]
    return Column(title, text, right=True, fit=Fit.WHOLE)


_COLUMNS = (
    column("PART", "part", fit=Fit.WHOLE),
    Column("KEPT", _kept, right=True, fit=Fit.WHOLE),
    Column("BYTES A SAMPLE", _sample, right=True, fit=Fit.WHOLE),
    _bytes("bytes_per_device_day"),
    _bytes("bytes"),
)


@app.command("size")
def size(
    devices: Annotated[
        int | None,
        typer.Option(
            "--devices",
            min=1,
            max=100_000_000,
            help="For so many devices like those of this fleet.",
            show_default="those of this fleet",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the room that history takes with the set retention, from what the fleet writes."""
    from poller import bootstrap
    from poller.service.history.history_size import history_size

    services = bootstrap.services()
    inventory_database.database(services)
    found = history_size(services, devices)
    items = [item.model_dump() for item in size_json.items(found.parts, found.total_bytes)]
    fleet = size_json.fleet(found.fleet).model_dump()
    render.listing(
        "poller.history.size/1", items, _COLUMNS, as_json, devices=found.devices, fleet=fleet
    )
    if as_json:
        return
    render.note(
        f"for {formatting.counted(found.devices, 'device')}; this fleet has "
        f"{fleet['devices']} with {formatting.counted(fleet['targets'], 'target')}, "
        f"{fleet['polls_per_day']:g} polls a day of {fleet['samples_per_poll']:g} samples"
    )
    if not all(part.is_measured for part in found.parts):
        render.note(_ESTIMATED)
