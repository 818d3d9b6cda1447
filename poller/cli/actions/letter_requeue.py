"""Requeues and drops dead letters: the work, its events, and the printed result of a requeue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from poller import errors, event_publisher
from poller.cli.actions import result_wait
from poller.cli.inventory import inventory_database
from poller.cli.output import progress, render
from poller.cli.output.columns import one_line
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.target_status import Status
from poller.presentation import formatting
from poller.service.command_actor import operator_name

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.bootstrap import Services
    from poller.db.record.dead_letter_rows import Named

#: Up to this number each letter gets its own event; above it one event names all targets.
SINGLE_EVENTS = 100


def spread_text(count: int) -> str:
    """`200 dead letters within 3 s`"""
    from poller.state.board.moves import requeue_spread_ms

    text = formatting.counted(count, "dead letter")
    within_ms = requeue_spread_ms(count)
    return f"{text} within {formatting.duration(within_ms)}" if within_ms else text


def requeue(services: Services, letters: Sequence[Named], wait_s: float) -> dict[str, Any]:
    """Requeue letters, publish it, and wait for the results if `wait_s` is not 0.

    Returns the counts.
    """
    now_ms = services.board.now_ms()
    ids = [named.letter.target_id for named in letters]
    places = services.board.requeue(ids, now_ms)
    requeued = [named for named in letters if places[named.letter.target_id] in ("due", "inflight")]
    event_publisher.publish(
        services, _events(Kind.DEAD_LETTER_REQUEUED, requeued, now_ms, "requeued")
    )

    counts = Counter(places.values())
    item: dict[str, Any] = {
        "requeued": len(requeued),
        "opened_by_hand": counts["opened"],
        "not_on_board": counts["gone"],
    }
    if wait_s:
        item |= _results(services, requeued, now_ms, wait_s)

    return item


def _results(
    services: Services, requeued: Sequence[Named], now_ms: int, wait_s: float
) -> dict[str, Any]:
    """The results of requeued letters: how many succeed, fail or still wait, and each failure."""
    ids = [named.letter.target_id for named in requeued]
    polls = result_wait.finished(services, ids, now_ms, wait_s)
    tracked = progress.track(polls, len(ids), "waiting for results")
    done = dict(tracked)

    failures = []
    for named in requeued:
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


def drop(services: Services, engine: Engine, letters: Sequence[Named]) -> int:
    """Disable the targets of letters and remove the letters.

    Returns the number of dropped letters.
    """
    from poller.db.record import dead_letter_rows

    ids = [named.letter.target_id for named in letters]
    dropped = dead_letter_rows.drop(engine, ids, inventory_database.author())
    now_ms = event_publisher.now_ms()
    events = _events(Kind.DEAD_LETTER_CLEARED, letters, now_ms, "dropped")

    try:
        event_publisher.publish(services, events)
    except errors.StoreError as error:  # the change is stored; only its event is lost
        render.note(f"note: no event was published: {error}")

    return dropped


def _events(kind: Kind, letters: Sequence[Named], now_ms: int, verb: str) -> list[Event]:
    """One event per letter, or one event for all of a large number: the stream is bounded."""
    if len(letters) <= SINGLE_EVENTS:
        return [_event(kind, named, now_ms, verb) for named in letters]

    who = operator_name()
    ids = [named.letter.target_id for named in letters]
    message = f"{len(letters):,} dead letters were {verb} by {who}"

    return [Event(now_ms, kind, message, data={"who": who, "did": verb, "targets": ids})]


def _event(kind: Kind, named: Named, now_ms: int, verb: str) -> Event:
    who = operator_name()
    letter = named.letter
    reason = letter.reason.value if letter.reason else ""

    return Event(
        at_ms=now_ms,
        kind=kind,
        message=f"{named.device}/{named.target} was {verb} by {who} ({reason})",
        device=named.device,
        target=named.target,
        target_id=letter.target_id,
        data={"who": who, "did": verb, "reason": reason, "attempts": letter.attempts},
    )
