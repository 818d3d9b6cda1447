"""`poller breaker`: which targets are left alone, since when and why; close a breaker, or open one by hand."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors, event_publisher
from poller.cli.arguments import since, target_arguments
from poller.cli.output import progress, render
from poller.cli.output.columns import Column, Fit, column, plain
from poller.cli.output.render import Json
from poller.domain.inventory import duration
from poller.domain.record.event_kinds import Event, Kind
from poller.presentation import formatting
from poller.state.board.breakers import BoardTarget, Breakers
from poller.state.board.record_formats import Opening
from poller.state.cluster import overview_reader

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.inventory.targets import Target
    from poller.domain.inventory.poll_target import PollTarget

SHORTEST_MS = 1_000
LONGEST_MS = 30 * 86_400_000

app = typer.Typer(
    no_args_is_help=True, help="Targets that are left alone because they keep failing, or by hand."
)


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: Json = False,
) -> None:
    """Open breakers, those that are open the longest first."""
    from poller.cli.inventory.inventory_database import database
    from poller.db.inventory import inventory_feed

    services = bootstrap.services()
    breakers, view = Breakers(services.board), overview_reader.read(services.redis, services.keys)
    every = progress.track(
        breakers.list_open(view.as_of_ms),
        view.breakers_open + view.opened_by_hand,
        "looking at breakers",
    )
    found = {each.id: each for each in every}
    worst = heapq.nsmallest(limit, found.values(), key=lambda each: each.since_ms)
    seen = breakers.show([each.id for each in worst], view.as_of_ms)
    targets = inventory_feed.poll_targets(database(services), seen)
    items = [
        _item(each, targets[each.id], view.as_of_ms) for each in seen.values() if each.id in targets
    ]
    render.listing("poller.breaker.list/1", items, _COLUMNS, as_json, total=len(found))
    if not as_json:
        render.note(_totals(found, len(items)))


@app.command("show")
def show(place: target_arguments.One, as_json: Json = False) -> None:
    """The breaker of each target of a device, open or closed."""
    services, targets = _chosen([place])
    now_ms = services.board.now_ms()
    seen = Breakers(services.board).show(list(targets), now_ms)
    _refuse_absent(targets, seen)
    items = [_item(each, targets[each.id], now_ms) for each in seen.values()]
    if as_json or len(items) > 1:
        render.listing("poller.breaker.show/1", items, _COLUMNS, as_json)
    else:
        render.record("poller.breaker.show/1", items[0], as_json)


@app.command("reset")
def reset(places: target_arguments.Many, as_json: Json = False) -> None:
    """Close breakers and forget their failures: polled at the next slot. What a poll that is under way finds wins."""
    services, targets = _chosen(places)
    breakers, now_ms = Breakers(services.board), services.board.now_ms()
    before = breakers.show(list(targets), now_ms)
    _refuse_absent(targets, before)
    answers = breakers.reset(list(before), now_ms)
    done = [i for i, answer in answers.items() if answer in ("due", "inflight", "held")]
    event_publisher.publish(
        services, [_closed(before[i], targets[i], now_ms) for i in done if before[i].is_open]
    )
    services.board.wake("demand")
    counts = Counter(answers.values())
    item = {"reset": len(done), "closed_already": counts["closed"], "in_flight": counts["inflight"]}
    item |= {
        "site_dark": counts["held"],
        "not_on_board": len(targets) - len(before) + counts["gone"],
    }
    text = f"reset {formatting.counted(len(done), 'breaker')}"
    text += f", {counts['closed']:,} closed already" if counts["closed"] else ""
    render.changed(text, "poller.breaker.reset/1", item, as_json)
    if counts["held"] and not as_json:
        render.note(
            f"{formatting.counted(counts['held'], 'target')} of a dark site: polled when the site is back"
        )
    if counts["changed"]:
        raise errors.StoreConflict(
            f"{formatting.counted(counts['changed'], 'target')} changed at every look",
            hint="repeat it",
        )


@app.command("open")
def open_(
    places: target_arguments.Many,
    for_: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="For how long, 1s to 30d.")
    ] = "30m",
    as_json: Json = False,
) -> None:
    """Open breakers by hand: nobody polls these targets until then, unless `poller poll` asks for one."""
    length_ms = since.length_ms("--for", for_)
    if not SHORTEST_MS <= length_ms <= LONGEST_MS:
        hint = "choose 1s to 30d; to stop for good: poller target edit DEVICE TARGET --disable"
        raise errors.InvalidInput(f"--for {for_} is out of bounds", hint=hint)
    services, targets = _chosen(places)
    now_ms = services.board.now_ms()
    opening = Opening(now_ms + length_ms, now_ms, target_arguments.who())
    answers = Breakers(services.board).open(list(targets), opening)
    opened = {i: targets[i] for i, answer in answers.items() if answer != "gone"}
    _refuse_absent(targets, opened)
    event_publisher.publish(services, [_opened(target, opening) for target in opened.values()])
    until = _instant(opening.until_ms)
    item = {
        "opened": len(opened),
        "in_flight": Counter(answers.values())["inflight"],
        "until": until,
        "by": opening.who,
    }
    text = f"opened {formatting.counted(len(opened), 'breaker')} until {plain(until)}"
    render.changed(
        text, "poller.breaker.open/1", item, as_json, f"poller breaker reset {' '.join(places)}"
    )


def _chosen(places: Sequence[str]) -> tuple[Services, dict[int, Target]]:
    from poller.cli.inventory.inventory_database import database

    services = bootstrap.services()
    return services, target_arguments.targets(database(services), places)


def _refuse_absent(targets: Mapping[int, Target], present: Mapping[int, Any]) -> None:
    if not present:
        first = next(iter(targets.values()))
        cause = "it is disabled, or no scheduler has run since it was added"
        raise errors.NotFound(
            f'target "{first.device}/{first.name}" is not on the board', cause, "poller status"
        )


def _opened(target: Target, opening: Opening) -> Event:
    until = plain(_instant(opening.until_ms))
    message = f"{target.device}/{target.name} is left alone until {until}: opened by hand by {opening.who}"
    data = {"who": opening.who, "by": "hand", "until_ms": opening.until_ms}
    return Event(
        opening.since_ms,
        Kind.BREAKER_OPENED,
        message,
        target.device,
        target.name,
        target.id,
        data=data,
    )


def _closed(was: BoardTarget, target: Target, now_ms: int) -> Event:
    spoken, who = duration.rounded_text(max(0, now_ms - was.since_ms)), target_arguments.who()
    message = (
        f"{target.device}/{target.name} is polled as usual again after {spoken}: reset by {who}"
    )
    data = {"who": who, "by": "hand", "failures": was.status.failures}
    return Event(
        now_ms, Kind.BREAKER_CLOSED, message, target.device, target.name, target.id, data=data
    )


def _totals(found: Mapping[int, BoardTarget], shown: int) -> str:
    if not found:
        return "no breaker is open"
    by_hand = sum(each.opening is not None for each in found.values())
    text = f"{formatting.counted(len(found), 'breaker')} open" + (
        f", {by_hand:,} of them by hand" if by_hand else ""
    )
    return f"{text}; --limit {len(found)} shows all" if len(found) > shown else text


def _item(seen: BoardTarget, target: Target | PollTarget, now_ms: int) -> dict[str, Any]:
    status, opening = seen.status, seen.opening
    return {
        "target_id": seen.id,
        "device": target.device,
        "target": target.name,
        "breaker": seen.breaker_state(now_ms).value,
        "by": "" if not seen.is_open else f"hand ({opening.who})" if opening else "failures",
        "since": _instant(seen.since_ms),
        "for_seconds": max(0, now_ms - seen.since_ms) // 1000 if seen.since_ms else None,
        "failures": status.failures,
        "trips": status.breaker.trips,
        "next_poll": _instant(seen.next_ms),
        "in_seconds": max(0, seen.next_ms - now_ms) // 1000 if seen.next_ms else None,
        "place": seen.place,
        "dead_letter": status.reason.value if status.reason else "",
        "error_code": status.code,
        "message": status.message,
    }


def _instant(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def _age(key: str) -> Any:
    return lambda item: "" if item[key] is None else formatting.age(item[key] * 1000)


_COLUMNS = (
    Column("TARGET", lambda item: f"{item['device']}/{item['target']}", fit=Fit.WHOLE),
    column("BREAKER", "breaker", fit=Fit.WHOLE),
    column("BY", "by", fit=Fit.WHOLE, spare=1),
    Column("FOR", _age("for_seconds"), right=True, fit=Fit.WHOLE),
    column("FAILURES", "failures", right=True, fit=Fit.WHOLE, spare=2),
    column("TRIPS", "trips", right=True, fit=Fit.WHOLE, spare=3),
    Column("NEXT POLL IN", _age("in_seconds"), right=True, fit=Fit.WHOLE),
    Column(
        "LAST ERROR",
        lambda item: ": ".join(filter(None, (item["error_code"], item["message"]))),
        fit=Fit.REST,
    ),
)
