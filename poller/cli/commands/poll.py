"""`poller poll`: polls targets now, or waits for a running poll; prints each outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.actions import bulk_change, result_wait
from poller.cli.actions.bulk_change import BulkOptions
from poller.cli.arguments import filter_options, target_arguments
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.target_arguments import OptionalTargetWord, TargetOption, split_target
from poller.cli.output import progress, render
from poller.cli.output.columns import Fit, column, target_column
from poller.domain.batched import batched
from poller.domain.failures import error_codes
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.presentation import formatting, health, running_workers

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.inventory.filter_conditions import SelectedTarget
    from poller.db.inventory.targets import Target
    from poller.db.record.stored_readings import Stored

    Polled = Target | SelectedTarget

#: Above this number a poll of all that match is confirmed.
MANY = 64
_PAGE = 1_000

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
    from poller.db.record import stored_readings

    filter_options.refuse_both(device, not selection.is_empty, "poller poll --help")
    services = bootstrap.services()
    engine = database(services)
    chosen = _chosen(services, device, target, selection)
    if not _agreed(chosen, bulk, as_json):
        return

    ids = [each.id for each in chosen]
    requested_ms, places = _demand(services, ids)
    _refuse_absent(chosen, places)
    _refuse_unserved(services, chosen)

    waiting = result_wait.finished(services, ids, requested_ms, wait_s)
    done = dict(progress.track(waiting, len(ids), "polling"))
    with_readings = [key for key, status in done.items() if _has_readings(status)]
    readings = stored_readings.latest(engine, with_readings)
    items = [_item(each, done.get(each.id), readings.get(each.id)) for each in chosen]
    render.listing("poller.poll/1", items, _COLUMNS, as_json)

    if len(done) < len(chosen):
        _explain(services, len(chosen) - len(done), wait_s)
        raise typer.Exit(result_wait.TIMED_OUT)
    if any(status.state is State.FAILING for status in done.values()):
        raise typer.Exit(1)


def _has_readings(status: Status) -> bool:
    """True if this poll, not only an earlier one, stored readings."""
    return status.state is not State.FAILING or status.code in error_codes.FINDINGS


def _agreed(chosen: Sequence[Polled], bulk: BulkOptions, as_json: bool) -> bool:
    """Whether to poll. More than `MANY` targets at once are confirmed: they come before others."""
    names = [f"{each.device}/{each.name}" for each in chosen]
    if len(chosen) <= MANY and not bulk.dry_run and bulk.number is None:
        return True
    action = f"poll {formatting.counted(len(chosen), 'target')} now"
    return bulk_change.agreed(action, names, bulk, as_json)


def _demand(services: Services, ids: Sequence[int]) -> tuple[int, dict[int, str]]:
    """Request the polls. Returns the instant of the first request and the place of each target."""
    places: dict[int, str] = {}
    requested_ms = 0
    for page in batched(ids, _PAGE):
        at_ms, found = services.board.demand(page)
        requested_ms = requested_ms or at_ms
        places |= found
    return requested_ms, places


def _chosen(
    services: Services, device: str | None, target: str | None, selection: FilterOptions
) -> Sequence[Polled]:
    """The named target, all of the device, or those that match. Raises NotFound if none is."""
    from poller.db.inventory import targets

    if device is None:
        matching = filter_options.matching_targets(services, selection.parse())
        enabled = [each for each in matching if each.enabled]
        if not enabled:
            raise errors.NotFound(
                f"every target that matches is disabled ({len(matching):,})",
                hint="poller target edit DEVICE/TARGET --enable",
            )
        return enabled

    device, target = split_target(device, target)
    return _of_device(targets.of_device(services.engine, device), device, target)


def _of_device(found: Sequence[Target], device: str, name: str | None) -> list[Target]:
    """The named target, or all of the device. Raises NotFound if there is none."""
    if not found:
        raise target_arguments.no_target(device)

    chosen = [target for target in found if name in (None, target.name)]
    if not chosen:
        raise errors.NotFound(
            f'device "{device}" has no target named "{name}"', hint=f"poller target list {device}"
        )

    return chosen


def _refuse_absent(chosen: Sequence[Polled], places: Mapping[int, str]) -> None:
    """Raise NotFound if the board holds none of the targets."""
    if all(places[target.id] == "gone" for target in chosen):
        raise target_arguments.not_on_board(chosen[0].device, chosen[0].name)


def _refuse_unserved(services: Services, chosen: Sequence[Polled]) -> None:
    """Raise NotFound for a target in a queue without a worker, instead of waiting in vain."""
    from poller.state.cluster import overview_reader
    from poller.state.redis_client import store_errors

    ids = [str(target.id) for target in chosen]
    view = overview_reader.read(services.redis, services.keys)

    for unroutable in running_workers.unroutable(view):
        key = services.keys.urgent(unroutable.queue)
        with store_errors(services.redis):
            scores: Any = services.redis.zmscore(key, ids)

        for target, score in zip(chosen, scores, strict=True):
            if score is not None:
                raise errors.NotFound(
                    f'no running worker takes target "{target.device}/{target.name}"',
                    f"its queue is {unroutable.queue}: {unroutable.reason}",
                    f"start a worker that has {running_workers.queue_needs(unroutable.queue)}; "
                    "a running one finds a new plugin after a restart",
                )


def _explain(services: Services, missing: int, wait_s: float) -> None:
    """Note the number of missing results and the health of the cluster, which explains them."""
    from poller.state.cluster import overview_reader

    verdict = health.judge(overview_reader.read(services.redis, services.keys)).text
    counted = formatting.counted(missing, "target")
    render.note(f"{counted} without a result after {wait_s:g} s. {verdict}")


def _item(target: Polled, status: Status | None, stored: Stored | None) -> dict[str, Any]:
    """The row of one target; `waiting` without a result."""
    item = {"device": target.device, "target": target.name, "collector": target.collector}
    if status is None:
        missing = {"state": "waiting", "samples": 0, "error_code": "", "message": "no result yet"}
        return item | missing

    is_fresh = stored is not None and stored.at_ms >= status.run_ms
    return {
        **item,
        "state": status.state.value,
        "samples": len(stored.readings.values) if stored is not None and is_fresh else 0,
        "error_code": status.code,
        "message": status.message,
    }
