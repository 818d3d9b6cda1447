"""Waits for the results of requeued dead letters, and prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from poller.cli.actions import result_wait
from poller.cli.output import progress, render
from poller.cli.output.columns import one_line
from poller.domain.record.target_status import Status
from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.record.dead_letter_rows import Named
    from poller.service.operations.letter_actions import Requeued


def with_results(services: Services, requeued: Requeued, wait_s: float) -> dict[str, Any]:
    """The counts of a requeue, with those of the results if `wait_s` is not 0."""
    item: dict[str, Any] = dict(requeued.counts())
    if wait_s and requeued.letters:
        item |= _results(services, requeued, wait_s)
    return item


def _results(services: Services, requeued: Requeued, wait_s: float) -> dict[str, Any]:
    """The results of requeued letters: how many succeed, fail or still wait, and each failure."""
    ids = requeued.ids
    polls = result_wait.finished(services, ids, requeued.requested_ms, wait_s)
    tracked = progress.track(polls, len(ids), "waiting for results")
    done = dict(tracked)

    failures = []
    for named in requeued.letters:
        status = done.get(named.letter.target_id)
        if status is None or not status.failures:
            continue
        failures.append(_failure(named, status))

    return {
        "good": len(done) - len(failures),
        "failing": len(failures),
        "waiting": len(ids) - len(done),
        "failures": failures,
    }


def _failure(named: Named, status: Status) -> dict[str, str]:
    return {
        "device": named.device,
        "target": named.target,
        "error_code": status.code,
        "message": status.message,
    }


def exit_unless_good(item: Mapping[str, Any]) -> None:
    """Exit with the code of the requeue result: 124 without all results, 1 with a failure."""
    if item.get("waiting"):
        raise typer.Exit(result_wait.TIMED_OUT)
    if item.get("failing"):
        raise typer.Exit(1)


def print_requeued(item: Mapping[str, Any], schema: str, as_json: bool) -> None:
    """Print the counts and failures of a requeue."""
    text = f"requeued {formatting.counted(item['requeued'], 'dead letter')}"
    if "good" in item:
        text += (
            f": {item['good']:,} answer, {item['failing']:,} still fail, "
            f"{item['waiting']:,} without a result"
        )

    render.changed(text, schema, item, as_json)
    if as_json:
        return

    for failure in item.get("failures", ()):
        name = f"{failure['device']}/{failure['target']}"
        render.echo(one_line(f"  {name}  {failure['error_code']}: {failure['message']}"))

    if item["opened_by_hand"]:
        opened = formatting.counted(item["opened_by_hand"], "breaker")
        render.note(f"{opened} opened by hand: poller breaker reset DEVICE")

    if item["not_on_board"]:
        absent = formatting.counted(item["not_on_board"], "target")
        render.note(f"{absent} not on the board: has a scheduler run?")
