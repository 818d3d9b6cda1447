"""`poller runs`: what became of every planned poll, the newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller.cli.arguments import completion
from poller.cli.arguments.since import Since, instant_ms
from poller.cli.arguments.target_arguments import place
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, column, moment
from poller.cli.output.render import Json
from poller.domain.inventory import duration

if TYPE_CHECKING:
    from poller.db.record.run_ledger import NamedRun


def _seconds(key: str) -> Any:
    def text(item: Any) -> str:
        return "" if item[key] is None else duration.rounded_text(round(item[key] * 1000))

    return text


def _name(item: Any) -> str:
    return f"{item['device'] or '(removed)'}/{item['target'] or item['target_id']}"


_COLUMNS = (
    moment("PLANNED", "planned"),
    Column("TARGET", _name, fit=Fit.WHOLE),
    Column("LATE", _seconds("late_seconds"), right=True, fit=Fit.WHOLE, spare=1),
    Column("TOOK", _seconds("took_seconds"), right=True, fit=Fit.WHOLE),
    column("OUTCOME", "outcome", fit=Fit.WHOLE),
    column("CODE", "error_code", fit=Fit.WHOLE),
    column("SAMPLES", "samples", right=True, fit=Fit.WHOLE, spare=2),
    column("TRY", "attempt", right=True, fit=Fit.WHOLE, spare=3),
    column("RUNNER", "runner", fit=Fit.WHOLE, spare=4),
    column("MESSAGE", "message", fit=Fit.REST),
)


def command(
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="DEVICE[/TARGET]",
            help="The device's name; none: all of them.",
            autocompletion=completion.devices,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET", help="Only this target of it.", autocompletion=completion.targets
        ),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only failed and refused ones.")] = False,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 20,
    as_json: Json = False,
) -> None:
    """Print the ledger: planned when, how late, how long, with which outcome, by whom."""
    from poller.db.inventory import devices, targets
    from poller.db.record import run_ledger

    since_ms = instant_ms(since)
    device, target = place(device, target) if device else (None, None)
    engine = inventory_database.database()
    chosen = targets.show(engine, device, target).id if device and target else None
    if device and not target:
        devices.show(engine, device)  # says so when there is none of that name
    whole = device if chosen is None else None
    found = run_ledger.recent(
        engine, target_id=chosen, device=whole, limit=limit, failed_only=failed, since_ms=since_ms
    )
    render.listing("poller.runs/1", [_item(each) for each in found], _COLUMNS, as_json)
    if not as_json:
        _explain(len(found), limit, failed)


def _item(named: NamedRun) -> dict[str, Any]:
    run = named.run
    return {
        "planned": _instant(run.plan_ms),
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
        "samples": run.samples,
        "attempt": run.attempt,
        "runner": run.runner,
        "message": run.message,
        "started": _instant(run.started_ms),
        "finished": _instant(run.finished_ms),
        "lease": run.token,
    }


def _instant(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def _explain(found: int, limit: int, failed: bool) -> None:
    if not found:
        render.note(
            "no failed run is on record" if failed else "no run is on record, or nothing matches"
        )
    elif found == limit:
        render.note(f"the newest {limit:,}; more with --limit, fewer with --since 1h")
