"""`poller poll DEVICE`: polls its targets now, or waits for a running poll; prints the outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.actions import result_wait
from poller.cli.arguments import target_arguments
from poller.cli.arguments.target_arguments import TargetOption, TargetWord, split_target
from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.domain.failures import error_codes
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.presentation import formatting, health

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.inventory.targets import Target
    from poller.db.record.stored_readings import Stored

_COLUMNS = [
    column("TARGET", "target", fit=Fit.WHOLE),
    column("COLLECTOR", "collector", fit=Fit.WHOLE, spare=1),
    column("STATE", "state", fit=Fit.WHOLE),
    column("SAMPLES", "samples", right=True, fit=Fit.WHOLE, spare=2),
    column("ERROR", "error_code", fit=Fit.WHOLE),
    column("MESSAGE", "message", fit=Fit.REST),
]


def command(
    device: TargetWord,
    target: TargetOption = None,
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for the result.")
    ] = 30.0,
    as_json: render.Json = False,
) -> None:
    """Poll a device on demand, through the cluster, and print the outcome of each target."""
    from poller.cli.inventory.inventory_database import database
    from poller.db.inventory import targets
    from poller.db.record import stored_readings

    device, target = split_target(device, target)
    services = bootstrap.services()
    engine = database(services)
    chosen = _chosen(targets.of_device(engine, device), device, target)
    ids = [each.id for each in chosen]
    requested_ms, places = services.board.demand(ids)
    _refuse_absent(chosen, places)
    _refuse_unserved(services, chosen)

    done = dict(result_wait.finished(services, ids, requested_ms, wait_s))
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


def _chosen(found: Sequence[Target], device: str, name: str | None) -> list[Target]:
    """The named target, or all of the device. Raises NotFound if there is none."""
    if not found:
        raise target_arguments.no_target(device)

    chosen = [target for target in found if name in (None, target.name)]
    if not chosen:
        raise errors.NotFound(
            f'device "{device}" has no target named "{name}"', hint=f"poller target list {device}"
        )

    return chosen


def _refuse_absent(chosen: Sequence[Target], places: Mapping[int, str]) -> None:
    """Raise NotFound if the board holds none of the targets."""
    if all(places[target.id] == "gone" for target in chosen):
        raise target_arguments.not_on_board(chosen[0])


def _refuse_unserved(services: Services, chosen: Sequence[Target]) -> None:
    """Raise NotFound for a target in a queue without a worker, instead of waiting in vain."""
    from poller.state.cluster import overview_reader
    from poller.state.redis_client import store_errors

    ids = [str(target.id) for target in chosen]
    view = overview_reader.read(services.redis, services.keys)

    for unroutable in health.unroutable(view):
        key = services.keys.urgent(unroutable.queue)
        with store_errors(services.redis):
            scores: Any = services.redis.zmscore(key, ids)

        for target, score in zip(chosen, scores, strict=True):
            if score is not None:
                raise errors.NotFound(
                    f'no running worker takes target "{target.device}/{target.name}"',
                    f"its queue is {unroutable.queue}: {unroutable.reason}",
                    f"start a worker that has {health.needs(unroutable.queue)}; "
                    "a running one finds a new plugin after a restart",
                )


def _explain(services: Services, missing: int, wait_s: float) -> None:
    """Note the number of missing results and the health of the cluster, which explains them."""
    from poller.state.cluster import overview_reader

    verdict = health.judge(overview_reader.read(services.redis, services.keys)).text
    counted = formatting.counted(missing, "target")
    render.note(f"{counted} without a result after {wait_s:g} s. {verdict}")


def _item(target: Target, status: Status | None, stored: Stored | None) -> dict[str, Any]:
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
