"""`poller size`: what a planned fleet takes."""

from __future__ import annotations

from typing import Annotated

import typer

from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column
from poller.cli.output.render import Json
from poller.presentation import formatting


def _amount(key: str) -> Column:
    def text(item: Item) -> str:
        amount = float(item[key])
        if item["unit"] == "bytes":
            return formatting.size(round(amount))
        if item["unit"] == "bits/s":
            return formatting.bits(amount)
        return f"{amount:.3g}"

    title = {"amount": "TAKES", "planned": "PLAN FOR"}[key]
    return Column(title, text, right=True, fit=Fit.WHOLE)


_COLUMNS = (
    column("PART", "part", fit=Fit.WHOLE),
    _amount("amount"),
    _amount("planned"),
    column("HOW", "how"),
)


def command(
    devices: Annotated[int, typer.Option("--devices", min=1, max=100_000_000, help="Devices.")],
    interfaces: Annotated[
        int, typer.Option("--interfaces", min=0, max=100_000, help="Interfaces of a device.")
    ] = 48,
    interval: Annotated[str, typer.Option("--interval", help="Interval of polls.")] = "60s",
    objects: Annotated[
        float | None,
        typer.Option(
            "--objects",
            min=0,
            max=10_000,
            help="Samples of an interface.",
            show_default="those of if_mib",
        ),
    ] = None,
    history_days: Annotated[
        float | None,
        typer.Option(
            "--history-days",
            min=0,
            max=3650,
            help="Days that every reading is kept.",
            show_default="readings_days",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            max=10_000,
            help="Worker processes.",
            show_default="as many as the fleet needs",
        ),
    ] = None,
    sinks: Annotated[
        int | None,
        typer.Option(
            "--sinks",
            min=0,
            max=100,
            help="Sinks besides the one of SQL.",
            show_default="those that are set",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute the cores, memory, disk and bandwidth of a fleet, from measured figures."""
    from poller import settings
    from poller.domain.inventory import duration
    from poller.presentation.history import needs_json
    from poller.service.history.fleet_size import SizeQuestion, fleet_needs

    question = SizeQuestion(
        devices=devices,
        interfaces=interfaces,
        interval_ms=duration.interval_ms(interval),
        objects=objects,
        history_days=history_days,
        workers=workers or 0,
        sinks=sinks,
    )
    plan, needs = fleet_needs(settings.load(), question)
    items = [item.model_dump() for item in needs_json.items(needs)]
    fleet = needs_json.fleet(plan)
    render.listing("poller.size/1", items, _COLUMNS, as_json, fleet=fleet.model_dump())
    if as_json:
        return
    render.note(
        f"for {formatting.counted(devices, 'device')} with {interfaces} interfaces: "
        f"{fleet.polls_per_s:,.4g} polls and {fleet.samples_per_s:,.0f} samples a second"
    )
    render.note("measured on two cores of a server; what your fleet writes: poller history size")
