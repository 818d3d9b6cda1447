"""Actions on dead letters: list, show, requeue, drop."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from poller import errors, event_publisher
from poller.db.inventory.inventory_feed import Author
from poller.db.record import dead_letter_rows, letter_groups
from poller.db.record.dead_letter_rows import Named, Wanted
from poller.domain.access.actor import Actor
from poller.domain.failures.dead_letter import GroupBy
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import ANY, TargetFilter
from poller.domain.record.event_kinds import Event, Kind
from poller.presentation import formatting
from poller.service import action_audit
from poller.service.operations import shown_letters, target_choice
from poller.service.operations.shown_letters import ShownGroup, ShownLetter
from poller.state.board.moves import requeue_spread_ms

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: The stream of events has room for this many times as many events as one action makes. More
#: letters make one event, which names all targets and devices, and belongs to none of them.
_STREAM_SHARE = 10
#: Places of the board in which a requeued target is polled soon.
_REQUEUED = ("due", "inflight")


@dataclass(frozen=True, slots=True)
class LetterQuery:
    """Which letters. A reason says why a target is parked; `code` of the filter is the letter's
    own code, not that of the last poll. `message` is the whole text of its error.
    """

    reason: str = ""
    wanted: TargetFilter = ANY
    named: Sequence[target_choice.Named] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class LetterPage:
    """A page of letters, the oldest first. `next_key` is None on the last page."""

    items: Sequence[ShownLetter]
    next_key: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Requeued:
    """Letters that are polled soon. Their polls end at or after `requested_ms`."""

    letters: Sequence[Named]
    requested_ms: int
    opened_by_hand: int
    not_on_board: int
    note: str = ""

    @property
    def ids(self) -> list[int]:
        return [named.letter.target_id for named in self.letters]

    def counts(self) -> dict[str, int]:
        """The numbers, as JSON has them."""
        return {
            "requeued": len(self.letters),
            "opened_by_hand": self.opened_by_hand,
            "not_on_board": self.not_on_board,
        }


@dataclass(frozen=True, slots=True)
class Dropped:
    """Letters that were dropped; as many targets are disabled."""

    dropped: int
    note: str = ""


def page(
    services: Services,
    actor: Actor,
    query: LetterQuery,
    limit: int,
    after: tuple[int, int] | None = None,
) -> LetterPage:
    """Return letters, the oldest first. Raises NotFound for an unknown name, NotAllowed."""
    wanted = conditions(services, actor, query)
    found = dead_letter_rows.listing(services.engine, wanted, limit + 1, after)
    return page_of(found, limit, event_publisher.now_ms())


def page_of(found: Sequence[Named], limit: int, now_ms: int) -> LetterPage:
    """Return rows as a page; one row more than the limit says that there is a next page."""
    items = [shown_letters.letter(named, now_ms) for named in found[:limit]]
    last = found[limit - 1].letter if len(found) > limit else None
    return LetterPage(items, (last.parked_ms, last.target_id) if last else None)


def groups(
    services: Services,
    actor: Actor,
    query: LetterQuery,
    by: GroupBy = GroupBy.CAUSE,
    limit: int | None = None,
) -> list[ShownGroup]:
    """Return groups, those of one cause unless said otherwise, the largest first. Raises as `page`
    does.
    """
    wanted = conditions(services, actor, query)
    now_ms = event_publisher.now_ms()
    since_ms = now_ms - shown_letters.ARRIVED_MS
    found = letter_groups.groups(services.engine, wanted, by, since_ms, limit)
    return [shown_letters.group(each, now_ms) for each in found]


def selected(services: Services, actor: Actor, query: LetterQuery) -> list[Named]:
    """Return all letters of a query. Raises NotFound if there is none."""
    found = dead_letter_rows.listing(services.engine, conditions(services, actor, query))
    if not found:
        is_any = query == LetterQuery()
        message = "there is no dead letter" if is_any else f"no dead letter matches {text(query)}"
        raise errors.NotFound(message, hint="poller deadletter list")
    return found


def of_names(services: Services, actor: Actor, pairs: Sequence[target_choice.Named]) -> list[Named]:
    """Return the letters of named targets. Raises NotFound if there is none."""
    wanted = conditions(services, actor, LetterQuery(named=pairs))
    found = dead_letter_rows.listing(services.engine, wanted)
    if not found:
        device, target = pairs[0]
        raise _no_letter(device if target is None else f"{device}/{target}")
    return found


def of_target(services: Services, actor: Actor, target_id: int) -> Named:
    """Return the letter of one target. Raises NotFound."""
    chosen = target_choice.with_id(services, actor, target_id)
    found = dead_letter_rows.listing(services.engine, Wanted(ids=[target_id]))
    if not found:
        raise _no_letter(chosen.full_name)
    return found[0]


def conditions(services: Services, actor: Actor, query: LetterQuery) -> Wanted:
    """Return a query in terms of SQL.

    Raises NotFound for an unknown device, site or collector, NotAllowed for another site.
    """
    others = replace(query.wanted, codes=())
    ids: set[int] | None = None
    if not others.is_empty:
        ids = target_choice.visible_ids(services, actor, others)
    if query.named:
        named = set(target_choice.named(services, actor, query.named))
        ids = named if ids is None else ids & named
    return Wanted(
        reason=query.reason,
        codes=query.wanted.codes,
        ids=ids,
        site=actor.site,
        message=query.message,
    )


def text(query: LetterQuery) -> str:
    """Return what selects letters, for the audit log: `reason:auth_failed site:fra`."""
    words = [f"reason:{query.reason}"] if query.reason else []
    words += [device if name is None else f"{device}/{name}" for device, name in query.named]
    words += [target_filter.text(query.wanted)] if not query.wanted.is_empty else []
    words += [f"message:{shlex.quote(query.message)}"] if query.message else []
    return " ".join(words) or "all dead letters"


def spread_text(count: int) -> str:
    """Return `200 dead letters within 3 s`."""
    text = formatting.counted(count, "dead letter")
    within_ms = requeue_spread_ms(count)
    return f"{text} within {formatting.duration(within_ms)}" if within_ms else text


def requeue(services: Services, actor: Actor, letters: Sequence[Named], subject: str) -> Requeued:
    """Poll the targets of letters soon, and publish it. `subject` says what selected them."""
    now_ms = services.board.now_ms()
    places = services.board.requeue([named.letter.target_id for named in letters], now_ms)
    requeued = [named for named in letters if places[named.letter.target_id] in _REQUEUED]
    kind = Kind.DEAD_LETTER_REQUEUED
    events = _events(services, kind, requeued, now_ms, "requeued", actor.name)
    event_publisher.publish(services, events)

    counts = Counter(places.values())
    names = map(shown_letters.full_name, requeued)
    entry = action_audit.bulk_entry("dead_letter.requeue", subject, names)
    return Requeued(
        letters=requeued,
        requested_ms=now_ms,
        opened_by_hand=counts["opened"],
        not_on_board=counts["gone"],
        note=action_audit.record(services, actor, entry) if requeued else "",
    )


def drop(
    services: Services, author: Author, actor: Actor, letters: Sequence[Named], subject: str
) -> Dropped:
    """Disable the targets of letters and remove the letters, all or none."""
    names = map(shown_letters.full_name, letters)
    entry = action_audit.bulk_entry("dead_letter.drop", subject, names)
    ids = [named.letter.target_id for named in letters]
    dropped = dead_letter_rows.drop(services.engine, ids, author, entry)
    now_ms = event_publisher.now_ms()
    kind = Kind.DEAD_LETTER_CLEARED
    events = _events(services, kind, letters, now_ms, "dropped", actor.name)
    try:
        event_publisher.publish(services, events)
    except errors.StoreError as error:  # the change is stored; only its event is lost
        return Dropped(dropped, f"no event was published: {error}")
    return Dropped(dropped)


def _no_letter(name: str) -> errors.NotFound:
    return errors.NotFound(f"{name} is no dead letter", hint=f"poller breaker show {name}")


def _events(
    services: Services, kind: Kind, letters: Sequence[Named], now_ms: int, verb: str, who: str
) -> list[Event]:
    """One event per letter, or one event for all of a large number: the stream is bounded."""
    if len(letters) <= services.settings.events_length // _STREAM_SHARE:
        return [_event(kind, named, now_ms, verb, who) for named in letters]

    data = {
        "who": who,
        "did": verb,
        "targets": [named.letter.target_id for named in letters],
        "devices": sorted({named.device_id for named in letters}),
    }
    message = f"{len(letters):,} dead letters were {verb} by {who}"
    return [Event(now_ms, kind, message, data=data)]


def _event(kind: Kind, named: Named, now_ms: int, verb: str, who: str) -> Event:
    letter = named.letter
    reason = letter.reason.value if letter.reason else ""
    return Event(
        at_ms=now_ms,
        kind=kind,
        message=f"{shown_letters.full_name(named)} was {verb} by {who} ({reason})",
        device=named.device,
        target=named.target,
        target_id=letter.target_id,
        device_id=named.device_id,
        data={"who": who, "did": verb, "reason": reason, "attempts": letter.attempts},
    )
