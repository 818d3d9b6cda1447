"""`poller poll`: polls targets now, or waits for a running poll; prints each outcome."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap
from poller.cli.actions import bulk_change, result_wait
from poller.cli.actions.bulk_change import BulkOptions
from poller.cli.arguments import filter_options
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.target_arguments import OptionalTargetWord, TargetOption, split_target
from poller.cli.output import progress, render
from poller.cli.output.columns import Fit, column, target_column
from poller.domain.inventory import target_filter
from poller.domain.record.overview import State
from poller.presentation import formatting
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.service.operations.poll_actions import PollResult
    from poller.service.operations.target_choice import Choice

_COLUMNS = [
    target_column(),
    column("COLLECTOR", "collector", fit=Fit.WHOLE, spare=1),
    column("STATE", "state", fit=Fit.WHOLE),
    column("SAMPLES", "samples", right=True, fit=Fit.WHOLE, spare=2),
    column("ERROR", "error_code", fit=Fit.WHOLE),
    column("MESSAGE", "message", fit=Fit.REST),
]


@expand_options
def command(
    device: OptionalTargetWord = None,
    target: TargetOption = None,
    *,
    selection: FilterOptions,
    bulk: BulkOptions,
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for the result.")
    ] = 30.0,
    as_json: render.Json = False,
) -> None:
    """Poll a device, or all targets that match a filter, now; print the outcome of each target."""
    from poller.cli.inventory.inventory_database import database
    from poller.service.operations import poll_actions

    filter_options.refuse_both(device, not selection.is_empty, "poller poll --help")
    services = bootstrap.services()
    database(services)
    chosen, subject = _chosen(services, device, target, selection)
    if not _agreed(chosen, bulk, as_json):
        return

    asked = poll_actions.request(services, command_actor.of_command(), chosen, subject)
    render.warning(asked.note)
    waiting = result_wait.finished(services, asked.ids, asked.requested_ms, wait_s)
    done = dict(progress.track(waiting, len(chosen), "polling"))
    found = poll_actions.results(services, chosen, done)
    render.listing("poller.poll/1", [_item(each) for each in found], _COLUMNS, as_json)

    if len(done) < len(chosen):
        missing = len(chosen) - len(done)
        render.note(poll_actions.explain_missing(services, missing, wait_s))
        raise typer.Exit(result_wait.TIMED_OUT)
    if any(status.state is State.FAILING for status in done.values()):
        raise typer.Exit(1)


def _agreed(chosen: Choice, bulk: BulkOptions, as_json: bool) -> bool:
    """Whether to poll. Many targets at once are confirmed: they come before others."""
    from poller.service.operations import poll_actions

    if len(chosen) <= poll_actions.MANY and not bulk.dry_run and bulk.number is None:
        return True
    names = [each.full_name for each in chosen.values()]
    action = f"poll {formatting.counted(len(chosen), 'target')} now"
    return bulk_change.agreed(action, names, bulk, as_json)


def _chosen(
    services: Services, device: str | None, target: str | None, selection: FilterOptions
) -> tuple[Choice, str]:
    """The named target, all of the device, or those that match, and the text that selected them.

    Raises NotFound if none is.
    """
    from poller.service.operations import poll_actions, target_choice

    actor = command_actor.of_command()
    if device is None:
        wanted = selection.parse()
        found = poll_actions.matching_enabled(services, actor, wanted)
        return found, target_filter.text(wanted)

    device, target = split_target(device, target)
    subject = device if target is None else f"{device}/{target}"
    return target_choice.named(services, actor, [(device, target)]), subject


def _item(result: PollResult) -> dict[str, Any]:
    """The row of one target."""
    item = asdict(result)
    del item["finished"]
    return item
