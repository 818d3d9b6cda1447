"""`poller runs`: the outcome of every planned poll, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap
from poller.cli.arguments import completion
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.since import Since, instant_ms
from poller.cli.arguments.target_arguments import split_target
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import (
    Column,
    Fit,
    Item,
    column,
    duration_column,
    instant,
    moment,
)
from poller.cli.output.render import Json
from poller.domain.failures import error_codes

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.db.record.run_ledger import NamedRun


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
    column("MESSAGE", "message", fit=Fit.REST),
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
    from poller.db.record import run_ledger

    since_ms = instant_ms(since)
    services = bootstrap.services()
    engine = inventory_database.database(services)
    ids = selection.target_ids(services)
    if device:
        named = _named(engine, *split_target(device, target))
        ids = named if ids is None else ids & named

    found = run_ledger.recent(
        engine, target_ids=ids, limit=limit, failed_only=failed, since_ms=since_ms
    )
    render.listing("poller.runs/1", [_item(each) for each in found], _COLUMNS, as_json)
    if not as_json:
        _explain(len(found), limit, failed)


def _named(engine: Engine, device: str, target: str | None) -> set[int]:
    """The named target, or all of the device. Raises NotFound."""
    from poller.db.inventory import targets

    if target:
        return {targets.show(engine, device, target).id}
    return {each.id for each in targets.of_device(engine, device)}


def _item(named: NamedRun) -> dict[str, Any]:
    run = named.run
    return {
        "planned": instant(run.plan_ms),
        "device": named.device,
        "target": named.target,
        "target_id": run.target_id,
        "late_seconds": None if run.lateness_ms is None else run.lateness_ms / 1000,
        "took_seconds": run.duration_ms / 1000 if run.started_ms else None,
        "queue_seconds": run.queue_ms / 1000,
        "collect_seconds": run.collect_ms / 1000,
        "write_seconds": run.write_ms / 1000,
        "outcome": run.outcome.value,
        "error_code": run.error_code,
        "category": error_codes.category_of(run.error_code),
        "samples": run.samples,
        "attempt": run.attempt,
        "runner": run.runner,
        "message": run.message,
        "started": instant(run.started_ms),
        "finished": instant(run.finished_ms),
        "lease": run.token,
    }


def _explain(found: int, limit: int, failed: bool) -> None:
    """Note why the list is empty, or that there may be more."""
    if not found and failed:
        render.note("no failed run is on record")
    elif not found:
        render.note("no run is on record, or nothing matches")
    elif found == limit:
        render.note(f"the newest {limit:,}; more with --limit, fewer with --since 1h")
