"""`poller poll DEVICE`: poll its targets now, wait, and print what came. A poll that is running is waited for."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from poller import bootstrap, errors
from poller.bootstrap import Services
from poller.cli import render
from poller.cli.backend import database
from poller.db import readings, targets
from poller.db.targets import Target
from poller.domain import routing
from poller.domain.overview import State
from poller.domain.status import Status
from poller.state import overview

TIMED_OUT = 124
LOOK_EVERY_S = 0.1


def command(
    device: Annotated[str, typer.Argument(help="Name of the device.")],
    target: Annotated[str | None, typer.Option(help="Only this target of it.")] = None,
    wait_s: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for the result.")] = 30.0,
    as_json: render.Json = False,
) -> None:
    """Poll a device on demand, through the cluster, and print the outcome of each target."""
    services = bootstrap.services()
    engine = database(services)
    wanted = _wanted(targets.of_device(engine, device), device, target)
    asked_ms, places = services.board.demand([t.id for t in wanted])
    _refuse_absent(wanted, places)
    _refuse_unserved(services, wanted)
    done = _wait(services, [t.id for t in wanted], asked_ms, wait_s)
    found = readings.latest(engine, [t.id for t in wanted if t.id in done and done[t.id].state is not State.FAILING])
    items = [_item(t, done.get(t.id), found.get(t.id)) for t in wanted]
    render.listing("poller.poll/1", items, _COLUMNS, as_json)
    if len(done) < len(wanted):
        raise typer.Exit(TIMED_OUT)
    if any(status.state is State.FAILING for status in done.values()):
        raise typer.Exit(1)


def _wanted(found: Sequence[Target], device: str, name: str | None) -> list[Target]:
    chosen = [t for t in found if name in (None, t.name)]
    if not chosen:
        what = f'device "{device}" has no target named "{name}"' if name else f'device "{device}" has no target'
        raise errors.NotFound(what, hint=f"poller target add {device} --collector snmp")
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
    unserved = overview.read(services.redis, services.keys).unserved
    for target in wanted:
        queues = [queue for queue in unserved if routing.parse(queue)[0] == target.collector]
        if queues:
            raise errors.NotFound(
                f'no running worker takes target "{target.device}/{target.name}"',
                f"its queue is {queues[0]}",
                "start a worker that has the collector and the tags; a running one finds a new plugin after a restart",
            )


def _wait(services: Services, ids: Sequence[int], asked_ms: int, wait_s: float) -> dict[int, Status]:
    """Statuses that are newer than our question."""
    until = time.monotonic() + wait_s
    while True:
        statuses = services.board.statuses(ids)
        done = {i: status for i, status in statuses.items() if status.finished_ms >= asked_ms}
        if len(done) == len(ids) or time.monotonic() >= until:
            return done
        time.sleep(LOOK_EVERY_S)


def _item(target: Target, status: Status | None, stored: readings.Stored | None) -> dict[str, Any]:
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
    render.column("Target", "target"),
    render.column("Collector", "collector"),
    render.column("State", "state"),
    render.column("Samples", "samples", right=True),
    render.column("Error", "error_code"),
    render.column("Message", "message"),
]
