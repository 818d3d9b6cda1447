"""`poller breaker`: targets that are not polled; closes a breaker, or opens one by hand."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors, event_publisher
from poller.cli.actions import bulk_change
from poller.cli.actions.bulk_change import BulkOptions
from poller.cli.arguments import filter_options, since, target_arguments
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.target_arguments import (
    OptionalTargetWords,
    TargetWord,
)
from poller.cli.output import progress, render
from poller.cli.output.columns import (
    Fit,
    age_column,
    column,
    error_column,
    instant,
    plain,
    target_column,
)
from poller.cli.output.render import Json, Limit
from poller.domain.failures import error_codes
from poller.domain.inventory import duration
from poller.domain.record.event_kinds import Event, Kind
from poller.presentation import formatting
from poller.service.command_actor import operator_name
from poller.state.board.breakers import BoardTarget, Breakers
from poller.state.board.record_formats import Opening
from poller.state.cluster import overview_reader

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.inventory.filter_conditions import SelectedTarget
    from poller.db.inventory.targets import Target
    from poller.domain.inventory.poll_target import PollTarget

    Polled = Target | SelectedTarget

SHORTEST_MS = 1_000
LONGEST_MS = 30 * 86_400_000

app = typer.Typer(
    no_args_is_help=True, help="Targets that are not polled: they keep failing, or by hand."
)

_COLUMNS = (
    target_column(),
    column("BREAKER", "breaker", fit=Fit.WHOLE),
    column("BY", "by", fit=Fit.WHOLE, spare=1),
    age_column("FOR", "for_seconds"),
    column("FAILURES", "failures", right=True, fit=Fit.WHOLE, spare=2),
    column("TRIPS", "trips", right=True, fit=Fit.WHOLE, spare=3),
    age_column("NEXT POLL IN", "in_seconds"),
    error_column("LAST ERROR"),
)


@app.command("list")
def list_(limit: Limit = 50, as_json: Json = False) -> None:
    """List open breakers, those open the longest first."""
    from poller.cli.inventory.inventory_database import database
    from poller.db.inventory import inventory_feed

    services = bootstrap.services()
    breakers = Breakers(services.board)
    view = overview_reader.read(services.redis, services.keys)
    now_ms = view.as_of_ms
    expected = view.breakers_open + view.opened_by_hand
    scan = progress.track(breakers.list_open(now_ms), expected, "reading breakers")
    found = {each.id: each for each in scan}

    longest = heapq.nsmallest(limit, found.values(), key=attrgetter("since_ms"))
    states = breakers.show([each.id for each in longest], now_ms)
    targets = inventory_feed.poll_targets(database(services), states)

    items = []
    for each in states.values():
        if each.id in targets:
            items.append(_item(each, targets[each.id], now_ms))

    render.listing("poller.breaker.list/1", items, _COLUMNS, as_json, total=len(found))
    if not as_json:
        render.note(_totals(found, len(items)))


@app.command("show")
def show(target: TargetWord, as_json: Json = False) -> None:
    """Show the breaker of each target of a device, open or closed."""
    services = bootstrap.services()
    targets = _targets(services, [target])
    now_ms = services.board.now_ms()
    states = Breakers(services.board).show(list(targets), now_ms)
    _refuse_absent(targets, states)
    items = [_item(each, targets[each.id], now_ms) for each in states.values()]

    if as_json or len(items) > 1:
        render.listing("poller.breaker.show/1", items, _COLUMNS, as_json)
    else:
        render.record("poller.breaker.show/1", items[0], as_json)


@app.command("reset")
@expand_options
def reset(
    words: OptionalTargetWords = None,
    *,
    selection: FilterOptions,
    bulk: BulkOptions,
    as_json: Json = False,
) -> None:
    """Close breakers and clear their failures: polled at the next slot.

    The result of a running poll wins.
    """
    services = bootstrap.services()
    targets = _selected(services, words, selection, "poller breaker reset --help")
    if not _agreed("reset", targets, words, bulk, as_json):
        return

    breakers = Breakers(services.board)
    now_ms = services.board.now_ms()
    before = breakers.show(list(targets), now_ms)
    _refuse_absent(targets, before)

    results = breakers.reset(list(before), now_ms)
    done = [key for key, result in results.items() if result in ("due", "inflight", "held")]
    closed = [_closed(before[key], targets[key], now_ms) for key in done if before[key].is_open]
    event_publisher.publish(services, closed)
    services.board.wake("demand")

    counts = Counter(results.values())
    item = {
        "reset": len(done),
        "closed_already": counts["closed"],
        "in_flight": counts["inflight"],
        "site_dark": counts["held"],
        "not_on_board": len(targets) - len(before) + counts["gone"],
    }

    text = f"reset {formatting.counted(len(done), 'breaker')}"
    if counts["closed"]:
        text += f", {counts['closed']:,} closed already"

    render.changed(text, "poller.breaker.reset/1", item, as_json)
    if counts["held"] and not as_json:
        held = formatting.counted(counts["held"], "target")
        render.note(f"{held} of a dark site: polled when the site is back")

    if counts["changed"]:
        changed = formatting.counted(counts["changed"], "target")
        raise errors.StoreConflict(f"{changed} changed at every try", hint="repeat it")


@app.command("open")
@expand_options
def open_(
    words: OptionalTargetWords = None,
    *,
    selection: FilterOptions,
    bulk: BulkOptions,
    for_: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="For how long, 1s to 30d.")
    ] = "30m",
    as_json: Json = False,
) -> None:
    """Open breakers by hand: these targets are not polled until then, except by `poller poll`."""
    length_ms = since.length_ms("--for", for_)
    if not SHORTEST_MS <= length_ms <= LONGEST_MS:
        hint = "choose 1s to 30d; to stop for good: poller target edit DEVICE TARGET --disable"
        raise errors.InvalidInput(f"--for {for_} is out of bounds", hint=hint)

    services = bootstrap.services()
    targets = _selected(services, words, selection, "poller breaker open --help")
    if not _agreed("open", targets, words, bulk, as_json):
        return

    now_ms = services.board.now_ms()
    opening = Opening(now_ms + length_ms, now_ms, operator_name())

    places = Breakers(services.board).open(list(targets), opening)
    opened = {key: targets[key] for key, place in places.items() if place != "gone"}
    _refuse_absent(targets, opened)
    event_publisher.publish(services, [_opened(target, opening) for target in opened.values()])

    until = instant(opening.until_ms)
    item = {
        "opened": len(opened),
        "in_flight": Counter(places.values())["inflight"],
        "until": until,
        "by": opening.who,
    }
    text = f"opened {formatting.counted(len(opened), 'breaker')} until {plain(until)}"
    then = f"poller breaker reset {' '.join(words)}" if words else ""
    render.changed(text, "poller.breaker.open/1", item, as_json, then)


def _targets(services: Services, words: Sequence[str]) -> dict[int, Target]:
    """The named targets by id. Raises NotFound."""
    from poller.cli.inventory.inventory_database import database

    return target_arguments.targets(database(services), words)


def _selected(
    services: Services, words: Sequence[str] | None, selection: FilterOptions, hint: str
) -> Mapping[int, Polled]:
    """The named targets, or those that match a filter, by id. Raises NotFound."""
    filter_options.refuse_both(words, not selection.is_empty, hint)
    if words:
        return _targets(services, words)
    found = filter_options.matching_targets(services, selection.parse())
    return {each.id: each for each in found}


def _agreed(
    verb: str,
    targets: Mapping[int, Polled],
    words: Sequence[str] | None,
    bulk: BulkOptions,
    as_json: bool,
) -> bool:
    """Whether to go on. Named targets need no confirmation, those that match a filter do."""
    if words and not bulk.dry_run and bulk.number is None:
        return True
    names = [f"{each.device}/{each.name}" for each in targets.values()]
    action = f"{verb} the {formatting.counted(len(targets), 'breaker')} of these targets"
    return bulk_change.agreed(action, names, bulk, as_json)


def _refuse_absent(targets: Mapping[int, Polled], present: Mapping[int, Any]) -> None:
    """Raise NotFound if the board holds none of the targets."""
    if not present:
        first = next(iter(targets.values()))
        raise target_arguments.not_on_board(first.device, first.name)


def _opened(target: Polled, opening: Opening) -> Event:
    until = plain(instant(opening.until_ms))
    name = f"{target.device}/{target.name}"
    return Event(
        at_ms=opening.since_ms,
        kind=Kind.BREAKER_OPENED,
        message=f"{name} is not polled until {until}: opened by hand by {opening.who}",
        device=target.device,
        target=target.name,
        target_id=target.id,
        data={"who": opening.who, "by": "hand", "until_ms": opening.until_ms},
    )


def _closed(before: BoardTarget, target: Polled, now_ms: int) -> Event:
    who = operator_name()
    name = f"{target.device}/{target.name}"
    length = duration.rounded_text(max(0, now_ms - before.since_ms))

    return Event(
        at_ms=now_ms,
        kind=Kind.BREAKER_CLOSED,
        message=f"{name} is polled as usual again after {length}: reset by {who}",
        device=target.device,
        target=target.name,
        target_id=target.id,
        data={"who": who, "by": "hand", "failures": before.status.failures},
    )


def _totals(found: Mapping[int, BoardTarget], shown: int) -> str:
    """`12 breakers open, 2 of them by hand; --limit 12 shows all`"""
    if not found:
        return "no breaker is open"

    text = f"{formatting.counted(len(found), 'breaker')} open"
    by_hand = sum(each.opening is not None for each in found.values())
    if by_hand:
        text += f", {by_hand:,} of them by hand"

    if len(found) > shown:
        text += f"; --limit {len(found)} shows all"

    return text


def _item(seen: BoardTarget, target: Target | PollTarget, now_ms: int) -> dict[str, Any]:
    status = seen.status
    since_ms = seen.since_ms
    next_ms = seen.next_ms

    return {
        "target_id": seen.id,
        "device": target.device,
        "target": target.name,
        "breaker": seen.breaker_state(now_ms).value,
        "by": _opened_by(seen),
        "since": instant(since_ms),
        "for_seconds": max(0, now_ms - since_ms) // 1000 if since_ms else None,
        "failures": status.failures,
        "trips": status.breaker.trips,
        "next_poll": instant(next_ms),
        "in_seconds": max(0, next_ms - now_ms) // 1000 if next_ms else None,
        "place": seen.place,
        "dead_letter": status.reason.value if status.reason else "",
        "error_code": status.code,
        "category": error_codes.category_of(status.code),
        "message": status.message,
    }


def _opened_by(seen: BoardTarget) -> str:
    """The opener of a breaker: `failures`, `hand (alice)`, or empty if it is closed."""
    if not seen.is_open:
        return ""
    return f"hand ({seen.opening.who})" if seen.opening else "failures"
