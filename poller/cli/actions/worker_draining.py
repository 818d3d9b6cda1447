"""Prints the drain of workers and its end, and waits until the workers have finished."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from poller import bootstrap
from poller.cli.actions.result_wait import TIMED_OUT
from poller.cli.arguments import since
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.presentation import formatting
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.service.operations.drain_actions import DrainPlan

SCHEMA = "poller.workers.drain/1"
ASK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which workers, how long, why; also if queues are left alone; and the seconds to wait."""

    names: Sequence[str]
    length: str
    reason: str
    is_forced: bool
    wait_s: float


def drain(wanted: Wanted, dry_run: bool, as_json: bool) -> None:
    """Drain workers. Raises NotFound, InvalidInput, NotConfirmed."""
    from poller.service.operations import drain_actions

    services = bootstrap.services()
    inventory_database.database(services)
    length_s = since.length_ms("--for", wanted.length) / 1000
    if dry_run:
        planned = drain_actions.plan(services, wanted.names)
        item = {**_fields(planned), "dry_run": True}
        render.changed(f"would drain {_named(planned.names)}", SCHEMA, item, as_json)
        _print_covers(planned, as_json)
        return

    actor = command_actor.of_command()
    done = drain_actions.drain(
        services, actor, wanted.names, length_s, wanted.reason, wanted.is_forced
    )
    until = formatting.instant(done.drain.until_ms)
    left = _wait(services, done.plan.names, wanted.wait_s)
    item = {**_fields(done.plan), "until": until, "finished": not left if wanted.wait_s else None}
    text = f"draining {_named(done.plan.names)} until {until}"
    if wanted.wait_s and not left:
        text = f"drained {_named(done.plan.names)} until {until}: nothing is left"
    undo = f"poller workers resume {' '.join(done.plan.names)}"
    render.changed(text, SCHEMA, item, as_json, undo)
    _print_covers(done.plan, as_json)
    render.warning(done.note)
    if left:
        waited = f"after {wanted.wait_s:g} s"
        render.note(f"not finished {waited}: {', '.join(left)}; see poller workers")
        raise typer.Exit(TIMED_OUT)


def resume(names: Sequence[str], as_json: bool) -> None:
    """End the drain of workers. Raises NotFound."""
    from poller.service.operations import drain_actions

    services = bootstrap.services()
    inventory_database.database(services)
    done = drain_actions.resume(services, command_actor.of_command(), names)
    text = f"{_named(done.names)} take{'s' if len(done.names) == 1 else ''} work again"
    if done.others:
        text += f"; {formatting.counted(done.others, 'worker')} had no drain"
    item = {"names": list(done.names), "unchanged": done.others}
    render.changed(text, "poller.workers.resume/1", item, as_json)
    render.warning(done.note)


def _wait(services: Services, names: Sequence[str], wait_s: float) -> list[str]:
    """Wait until these workers have finished. Returns the names of those that have not."""
    from poller.service.operations import drain_actions

    until_mono = time.monotonic() + wait_s
    while wait_s:
        left = [each.name for each in drain_actions.unfinished(services, names)]
        if not left or time.monotonic() >= until_mono:
            return left
        time.sleep(ASK_EVERY_S)
    return []


def _fields(planned: DrainPlan) -> dict[str, Any]:
    queues = [{"name": each.queue, "other_workers": len(each.others)} for each in planned.covers]
    return {
        "names": list(planned.names),
        "unfinished": planned.unfinished,
        "queues": queues,
        "left": planned.left,
    }


def _print_covers(planned: DrainPlan, as_json: bool) -> None:
    """Say on stderr who serves the queues meanwhile."""
    if as_json:
        return
    served = sum(bool(each.others) for each in planned.covers)
    others = formatting.counted(planned.others, "other worker")
    verb = "takes" if planned.others == 1 else "take"
    if served:
        render.note(f"{others} {verb} over {formatting.counted(served, 'queue')}")
    if planned.left:
        render.note(f"no other worker serves {', '.join(planned.left)}")


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else formatting.counted(len(names), "worker")
