"""Actions on breakers: list the open ones, show, reset, open by hand."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from poller import errors, event_publisher
from poller.db.inventory import filter_conditions
from poller.domain.access.actor import Actor
from poller.domain.alerts import maintenance_check
from poller.domain.batched import batched
from poller.domain.inventory import duration
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.record.event_kinds import Event, Kind
from poller.presentation import formatting
from poller.service import action_audit
from poller.service.operations import shown_breakers, target_choice
from poller.service.operations.shown_breakers import ShownBreaker
from poller.service.operations.target_choice import Choice, Chosen
from poller.state.board.breakers import BoardTarget, Breakers, OpenBreaker
from poller.state.board.record_formats import Opening
from poller.state.cluster import overview_reader

if TYPE_CHECKING:
    from poller.bootstrap import Services

SHORTEST_S = 1
LONGEST_S = 30 * 86_400
#: Results of a reset that closed the breaker, or cleared its failures.
_RESET = ("due", "inflight", "held")

#: Targets of one step of an action on many.
PAGE = 1_000
#: The stream of events has room for this many times as many events as one action makes.
_STREAM_SHARE = 10

#: Hears how many targets an action has done so far.
Tell = Callable[[int], None]


def _tell_nobody(done: int) -> None:
    """Follow the action without telling anybody."""


#: Follows a scan of open breakers, of which about as many are expected.
Watch = Callable[[Iterable[OpenBreaker], int], Iterable[OpenBreaker]]


@dataclass(frozen=True, slots=True)
class BreakersQuery:
    """Which open breakers, the longest open first. `after` is the key of the page before."""

    limit: int = 50
    after: tuple[int, int] | None = None
    wanted: TargetFilter | None = None


@dataclass(frozen=True, slots=True)
class OpenBreakers:
    """A page of open breakers, and the numbers of all of them."""

    items: Sequence[ShownBreaker]
    total: int
    by_hand: int
    next_key: tuple[int, int] | None  # None: this is the last page


@dataclass(frozen=True, slots=True)
class Reset:
    """The numbers of a reset."""

    reset: int
    closed_already: int
    in_flight: int
    site_dark: int
    not_on_board: int
    changed: int  # left as they were: they changed at every try
    note: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """How long breakers are opened by hand, and why: one line; "" for none."""

    length_s: float
    reason: str = ""

    def check(self, *, needs_reason: bool = False) -> None:
        """Refuse a pause that is too short or too long, or a reason that cannot be shown.

        A person who clicks must give a reason, a script may. Raises InvalidInput.
        """
        if not SHORTEST_S <= self.length_s <= LONGEST_S:
            raise errors.InvalidInput(
                "length: it is not between 1s and 30d", hint="for example 2h", field="length"
            )
        if needs_reason or self.reason.strip():
            maintenance_check.check_reason(self.reason)

    @property
    def line(self) -> str:
        """The reason as one line."""
        return " ".join(self.reason.split())


@dataclass(frozen=True, slots=True)
class Opened:
    """The numbers of an opening by hand."""

    opened: int
    in_flight: int
    until: datetime
    by: str
    note: str = ""
    since_ms: int = 0  # of the opening, by which it is recognized


def _unwatched(scan: Iterable[OpenBreaker], expected: int) -> Iterable[OpenBreaker]:
    return scan


def listing(
    services: Services, actor: Actor, query: BreakersQuery, watch: Watch = _unwatched
) -> OpenBreakers:
    """Return open breakers, the longest open first. Raises StoreError, NotFound, NotAllowed."""
    visible = None
    if query.wanted is not None and not query.wanted.is_empty:
        visible = target_choice.visible_ids(services, actor, query.wanted)
    breakers = Breakers(services.board)
    view = overview_reader.read(services.redis, services.keys)
    expected = view.breakers_open + view.opened_by_hand

    found: dict[int, OpenBreaker] = {}
    for each in watch(breakers.list_open(view.as_of_ms), expected):
        if visible is None or each.target_id in visible:
            found[each.target_id] = each
    if actor.site is not None and visible is None:
        here = filter_conditions.ids_in_site(services.engine, list(found), actor.site)
        found = {key: each for key, each in found.items() if key in here}

    rest = [each for each in found.values() if query.after is None or each[:2] > query.after]
    page = heapq.nsmallest(query.limit, rest)
    items = _page_items(services, [each.target_id for each in page], view.as_of_ms)
    return OpenBreakers(
        items=items,
        total=len(found),
        by_hand=sum(each.by_hand for each in found.values()),
        next_key=page[-1][:2] if len(rest) > len(page) else None,
    )


def _page_items(services: Services, ids: Sequence[int], now_ms: int) -> list[ShownBreaker]:
    """The breakers of a page with their names; targets that were removed meanwhile are left out."""
    states = Breakers(services.board).show(ids, now_ms)
    rows = filter_conditions.targets_by_id(services.engine, list(states))
    names = {row.id: row for row in rows}
    items = []
    for each in states.values():
        if each.id in names:
            row = names[each.id]
            items.append(shown_breakers.shown(each, row.device, row.name, now_ms))
    return items


def show(services: Services, chosen: Choice) -> list[ShownBreaker]:
    """Return the breaker of each target. Raises NotFound if the board holds none of them."""
    now_ms = services.board.now_ms()
    states = Breakers(services.board).show(list(chosen), now_ms)
    target_choice.refuse_absent(chosen, states)
    shown = []
    for each in states.values():
        target = chosen[each.id]
        shown.append(shown_breakers.shown(each, target.device, target.name, now_ms))
    return shown


def require_paused(services: Services, chosen: Choice) -> dict[int, Chosen]:
    """Return those of the targets whose breaker an operator keeps open.

    Raises NotFound if there is none, StoreError.
    """
    openings = Breakers(services.board).openings(services.board.now_ms())
    paused = {key: each for key, each in chosen.items() if key in openings}
    if not paused:
        matching = formatting.counted(len(chosen), "target")
        text = f"none of {matching} that match is paused by hand"
        raise errors.NotFound(text, hint="poller breaker list")
    return paused


def reset(
    services: Services,
    actor: Actor,
    chosen: Choice,
    subject: str,
    tell: Tell = _tell_nobody,
) -> Reset:
    """Close breakers and clear their failures. The result of a running poll wins.

    `subject` says what selected the targets, and `tell` hears how many are done. Raises NotFound if
    the board holds none of them.
    """
    breakers = Breakers(services.board)
    now_ms = services.board.now_ms()
    before: dict[int, BoardTarget] = {}
    results: dict[int, str] = {}
    for number, page in enumerate(batched(list(chosen), PAGE)):
        found = breakers.show(page, now_ms)
        results |= breakers.reset(list(found), now_ms)
        before |= found
        tell(number * PAGE + len(page))
    target_choice.refuse_absent(chosen, before)

    done = [key for key, result in results.items() if result in _RESET]
    closed = []
    for key in done:
        if before[key].is_open:
            closed.append(_closed_event(before[key], chosen[key], now_ms, actor.name))
    _publish(services, closed, f"{len(closed):,} breakers were reset by {actor.name}")
    services.board.wake("demand")

    counts = Counter(results.values())
    names = target_choice.full_names(chosen[key] for key in done)
    entry = action_audit.bulk_entry("breaker.reset", subject, names)
    return Reset(
        reset=len(done),
        closed_already=counts["closed"],
        in_flight=counts["inflight"],
        site_dark=counts["held"],
        not_on_board=len(chosen) - len(before) + counts["gone"],
        changed=counts["changed"],
        note=action_audit.record(services, actor, entry) if done else "",
    )


def refuse_unsettled(done: Reset) -> None:
    """Raise StoreConflict if targets were left as they were."""
    if done.changed:
        changed = formatting.counted(done.changed, "target")
        raise errors.StoreConflict(f"{changed} changed at every try", hint="repeat it")


def open_by_hand(
    services: Services,
    actor: Actor,
    chosen: Choice,
    pause: Pause,
    subject: str,
    tell: Tell = _tell_nobody,
) -> Opened:
    """Open breakers: until then, only a poll on demand polls these targets.

    `tell` hears how many are done. Raises InvalidInput, NotFound if the board holds none of them.
    """
    pause.check()
    now_ms = services.board.now_ms()
    until_ms = now_ms + round(pause.length_s * 1000)
    opening = Opening(until_ms, now_ms, actor.name, pause.line)
    breakers = Breakers(services.board)
    places: dict[int, str] = {}
    for page in batched(list(chosen), PAGE):
        places |= breakers.open(page, opening)
        tell(len(places))
    opened = [chosen[key] for key, place in places.items() if place != "gone"]
    target_choice.refuse_absent(chosen, [each.id for each in opened])
    why = f": {opening.reason}" if opening.reason else ""
    until = formatting.instant(opening.until_ms)
    many = f"{len(opened):,} targets are not polled until {until}: opened by {actor.name}{why}"
    _publish(services, [_opened_event(each, opening) for each in opened], many)

    said = {"until": until}
    if opening.reason:
        said["reason"] = opening.reason
    names = target_choice.full_names(opened)
    entry = action_audit.bulk_entry("breaker.open", subject, names, **said)
    return Opened(
        opened=len(opened),
        in_flight=Counter(places.values())["inflight"],
        until=formatting.utc(opening.until_ms),
        since_ms=opening.since_ms,
        by=actor.name,
        note=action_audit.record(services, actor, entry),
    )


def _publish(services: Services, events: Sequence[Event], many: str) -> None:
    """Publish an event for each target, or one event for very many: the stream is bounded."""
    if len(events) > services.settings.events_length // _STREAM_SHARE:
        first = events[0]
        data = {"who": first.data["who"], "by": "hand", "number": len(events)}
        events = [Event(first.at_ms, first.kind, many, data=data)]
    event_publisher.publish(services, events)


def _opened_event(target: Chosen, opening: Opening) -> Event:
    until = formatting.instant(opening.until_ms)
    opened = f"{target.full_name} is not polled until {until}: opened by hand by {opening.who}"
    return Event(
        at_ms=opening.since_ms,
        kind=Kind.BREAKER_OPENED,
        message=f"{opened}: {opening.reason}" if opening.reason else opened,
        device=target.device,
        target=target.name,
        target_id=target.id,
        device_id=target.device_id,
        data={
            "who": opening.who,
            "by": "hand",
            "reason": opening.reason,
            "until_ms": opening.until_ms,
            "address": target.address,
        },
    )


def _closed_event(before: BoardTarget, target: Chosen, now_ms: int, who: str) -> Event:
    length = duration.rounded_text(max(0, now_ms - before.since_ms))
    return Event(
        at_ms=now_ms,
        kind=Kind.BREAKER_CLOSED,
        message=f"{target.full_name} is polled as usual again after {length}: reset by {who}",
        device=target.device,
        target=target.name,
        target_id=target.id,
        device_id=target.device_id,
        data={"who": who, "by": "hand", "failures": before.status.failures},
    )
