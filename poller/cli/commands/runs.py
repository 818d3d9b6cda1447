"""`poller runs`: the outcome of every planned poll, the newest first."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from poller import bootstrap
from poller.cli.arguments import completion
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.since import Since, instant_ms
from poller.cli.arguments.target_arguments import split_target
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, duration_column, moment
from poller.cli.output.render import Json
from poller.service import command_actor


def _name(item: Item) -> str:
    """`DEVICE/TARGET`; the id of a target that was removed."""
    device = item["device"] or "(removed)"
    target = item["target"] or item["target_id"]
    return f"{device}/{target}"


_COLUMNS = (
    moment("PLANNED", "planned"),
    Column("TARGET", _name, fit=Fit.WHOLE),
    duration_column("LATE", "late_seconds", spare=1),
    duration_column("TOOK", "took_seconds"),
    column("OUTCOME", "outcome", fit=Fit.WHOLE),
    column("CODE", "error_code", fit=Fit.WHOLE),
    column("CATEGORY", "category", fit=Fit.WHOLE, spare=5),
    column("SAMPLES", "samples", right=True, fit=Fit.WHOLE, spare=2),
    column("TRY", "attempt", right=True, fit=Fit.WHOLE, spare=3),
    column("RUNNER", "runner", fit=Fit.WHOLE, spare=4),
    replace(column("MESSAGE", "message", fit=Fit.REST), wraps=True),
)


@expand_options
def command(
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="DEVICE[/TARGET]",
            help="The device's name. Default: all devices.",
            autocompletion=completion.devices,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="Only this target of the device.",
            autocompletion=completion.targets,
        ),
    ] = None,
    *,
    selection: FilterOptions,
    failed: Annotated[bool, typer.Option("--failed", help="Only failed and refused ones.")] = False,
    since: Since = None,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of rows to print.")
    ] = 20,
    as_json: Json = False,
) -> None:
    """Print the run ledger: plan, lateness, duration, outcome and worker of each poll."""
    from poller.presentation.record import runs_json
    from poller.service.record import run_listing
    from poller.service.record.run_listing import RunQuery

    name, target = split_target(device, target) if device else ("", None)
    query = RunQuery(
        device=name,
        target=target or "",
        wanted=selection.parse(),
        outcomes=run_listing.BAD if failed else (),
        since_ms=instant_ms(since),
    )
    services = bootstrap.services()
    inventory_database.database(services)
    found = run_listing.newest(services, command_actor.of_command(), query, limit)
    items = [runs_json.item(each).model_dump() for each in found]
    render.listing(runs_json.SCHEMA, items, _COLUMNS, as_json)
    if not as_json:
        _explain(len(found), limit, failed)


def _explain(found: int, limit: int, failed: bool) -> None:
    """Note why the list is empty, or that there may be more."""
    if not found and failed:
        render.note("no failed run is on record")
    elif not found:
        render.note("no run is on record, or nothing matches")
    elif found == limit:
        render.note(f"the newest {limit:,}; more with --limit, fewer with --since 1h")
