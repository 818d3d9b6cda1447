"""`poller poll DEVICE`: poll its targets now, wait, and print what came. A poll that is running is waited for."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion
from poller.cli.arguments.target_arguments import place
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

TIMED_OUT = 124
LOOK_EVERY_S = 0.1


def command(
    device: Annotated[
        str,
        typer.Argument(
            metavar="DEVICE[/TARGET]", help="The device's name.", autocompletion=completion.devices
        ),
    ],
    target: Annotated[
        str | None, typer.Option(help="Only this target of it.", autocompletion=completion.targets)
    ] = None,
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for the result.")
    ] = 30.0,
    as_json: render.Json = False,
) -> None:
    """Poll a device on demand, through the cluster, and print the outcome of each target."""
    from poller.cli.inventory.inventory_database import database
    from poller.db.inventory import targets
    from poller.db.record import stored_readings

    device, target = place(device, target)
    services = bootstrap.services()
    engine = database(services)
    wanted = _wanted(targets.of_device(engine, device), device, target)
    asked_ms, places = services.board.demand([t.id for t in wanted])
    _refuse_absent(wanted, places)
    _refuse_unserved(services, wanted)
    done = _wait(services, [t.id for t in wanted], asked_ms, wait_s)
    found = stored_readings.latest(
        engine, [t.id for t in wanted if t.id in done and _has_readings(done[t.id])]
    )
    items = [_item(t, done.get(t.id), found.get(t.id)) for t in wanted]
    render.listing("poller.poll/1", items, _COLUMNS, as_json)
    if len(done) < len(wanted):
        _explain(services, len(wanted) - len(done), wait_s)
        raise typer.Exit(TIMED_OUT)
    if any(status.state is State.FAILING for status in done.values()):
        raise typer.Exit(1)


def _has_readings(status: Status) -> bool:
    """Of this poll, not of one before it."""
    return status.state is not State.FAILING or status.code in error_codes.FINDINGS


def _wanted(found: Sequence[Target], device: str, name: str | None) -> list[Target]:
    chosen = [t for t in found if name in (None, t.name)]
    if not found:
        raise errors.NotFound(
            f'device "{device}" has no target', hint=f"poller target add {device} --collector snmp"
        )
    if not chosen:
        raise errors.NotFound(
            f'device "{device}" has no target named "{name}"', hint=f"poller target list {device}"
        )
    return chosen


def _refuse_absent(wanted: Sequence[Target], places: Mapping[int, str]) -> None:
    absent = [t for t in wanted if places[t.id] == "gone"]
    if len(absent) == len(wanted):
        first = absent[0]
        raise errors.NotFound(
            f'target "{first.device}/{first.name}" is not on the board',
            "it is disabled, or no scheduler has run since it was added",
            "poller status",
        )


def _refuse_unserved(services: Services, wanted: Sequence[Target]) -> None:
    """Nobody would ever answer: say so at once."""
    from poller.state.cluster import overview_reader
    from poller.state.redis_client import store_errors

    ids = [str(target.id) for target in wanted]
    for each in health.unroutable(overview_reader.read(services.redis, services.keys)):
        with store_errors(services.redis):
            waits: Any = services.redis.zmscore(services.keys.urgent(each.queue), ids)
        for target, at in zip(wanted, waits, strict=True):
            if at is not None:
                raise errors.NotFound(
                    f'no running worker takes target "{target.device}/{target.name}"',
                    f"its queue is {each.queue}: {each.reason}",
                    f"start a worker that has {health.needs(each.queue)}; "
                    "a running one finds a new plugin after a restart",
                )


def _wait(
    services: Services, ids: Sequence[int], asked_ms: int, wait_s: float
) -> dict[int, Status]:
    """Statuses that are newer than our question."""
    until = time.monotonic() + wait_s
    while True:
        statuses = services.board.statuses(ids)
        done = {i: status for i, status in statuses.items() if status.finished_ms >= asked_ms}
        if len(done) == len(ids) or time.monotonic() >= until:
            return done
        time.sleep(LOOK_EVERY_S)


def _explain(services: Services, missing: int, wait_s: float) -> None:
    """Why is there no answer? What the whole cluster is doing says it best."""
    from poller.state.cluster import overview_reader

    verdict = health.judge(overview_reader.read(services.redis, services.keys)).text
    render.note(
        f"{formatting.counted(missing, 'target')} without a result after {wait_s:g} s. {verdict}"
    )


def _item(target: Target, status: Status | None, stored: Stored | None) -> dict[str, Any]:
    fresh = stored if status and stored and stored.at_ms >= status.run_ms else None
    return {
        "device": target.device,
        "target": target.name,
        "collector": target.collector,
        "state": status.state.value if status else "waiting",
        "samples": len(fresh.readings.values) if fresh else 0,
        "error_code": status.code if status else "",
        "message": status.message if status else "no result yet",
    }


_COLUMNS = [
    column("TARGET", "target", fit=Fit.WHOLE),
    column("COLLECTOR", "collector", fit=Fit.WHOLE, spare=1),
    column("STATE", "state", fit=Fit.WHOLE),
    column("SAMPLES", "samples", right=True, fit=Fit.WHOLE, spare=2),
    column("ERROR", "error_code", fit=Fit.WHOLE),
    column("MESSAGE", "message", fit=Fit.REST),
]
