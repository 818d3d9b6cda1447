"""Readings and rates of a device for the command line and the API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from poller.db.history import polls_of_span
from poller.db.inventory import targets
from poller.db.inventory.targets import Target
from poller.db.record import stored_rates, stored_readings
from poller.db.record.stored_rates import RatesRequest, TargetRates
from poller.db.record.stored_readings import Stored
from poller.domain.access.actor import Actor
from poller.domain.metrics.reading import Series
from poller.service import site_limit

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Polls of a target that one page of its history reads.
MOST_POLLS = 100
_END_OF_TIME_MS = 2**62

#: Target, instant of its poll, and position of the last value of the page before.
ReadingKey = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class TargetPoll:
    """One poll of a target; None if it was never read."""

    target: Target
    stored: Stored | None


class ReadTime(NamedTuple):
    """When a target was read last; None: never."""

    target: Target
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a poll, with its position in it."""

    target: Target
    at_ms: int
    position: int
    series: Series
    value: float

    @property
    def key(self) -> ReadingKey:
        return self.target.id, self.at_ms, self.position


@dataclass(frozen=True, slots=True)
class ReadingPage:
    """Values in the order of their key, and the key of the next page; None on the last page."""

    values: Sequence[Value]
    next_key: ReadingKey | None


def chosen_targets(services: Services, actor: Actor, device: str, target: str = "") -> list[Target]:
    """Return a target of a device, or all of them. Raises NotFound, StoreError."""
    site_limit.visible_device(services, actor, device)
    if target:
        return [targets.show(services.engine, device, target)]
    return targets.of_device(services.engine, device)


def latest(services: Services, chosen: Sequence[Target]) -> list[TargetPoll]:
    """Return the last poll with readings of each target. Raises StoreError."""
    found = stored_readings.latest(services.engine, [target.id for target in chosen])
    return [TargetPoll(target, found.get(target.id)) for target in chosen]


def read_times(polls: Iterable[TargetPoll]) -> list[ReadTime]:
    """Return when each target was read last."""
    return [ReadTime(poll.target, poll.stored.at_ms if poll.stored else None) for poll in polls]


def values(polls: Iterable[TargetPoll], metric: str = "") -> Iterator[Value]:
    """Yield the values of polls whose metric contains a text."""
    for poll in polls:
        stored = poll.stored
        if stored is None:
            continue
        pairs = zip(stored.readings.series.series, stored.readings.values, strict=True)
        for position, (series, value) in enumerate(pairs):
            if metric in series.name:
                yield Value(poll.target, stored.at_ms, position, series, value)


def page_of_latest(
    services: Services,
    chosen: Sequence[Target],
    metric: str,
    since_ms: int,
    limit: int,
    after: ReadingKey | None = None,
) -> ReadingPage:
    """Return a page of the last values of targets. Raises StoreError.

    A poll that a page began is continued, also if the target was polled since.
    """
    in_order = sorted(chosen, key=lambda target: target.id)
    if after is not None:
        in_order = [target for target in in_order if target.id >= after[0]]
    polls = latest(services, in_order)
    if after is not None:
        polls = [_begun(services, poll, after) for poll in polls]
    recent = [poll for poll in polls if poll.stored and poll.stored.at_ms >= since_ms]
    return _page(values(recent, metric), limit, after)


def page_of_history(
    services: Services,
    target: Target,
    metric: str,
    since_ms: int,
    limit: int,
    after: ReadingKey | None = None,
) -> ReadingPage:
    """Return a page of the values of one target since an instant, the oldest first.

    A page can be short although there is a next one. Raises StoreError.
    """
    begin_ms = since_ms if after is None else max(since_ms, after[1])
    engine = services.engine
    found = polls_of_span.between(engine, target.id, begin_ms, _END_OF_TIME_MS, MOST_POLLS)
    polls = [TargetPoll(target, stored) for stored in found]
    page = _page(values(polls, metric), limit, after)
    if page.next_key is None and len(found) == MOST_POLLS:
        last = found[-1]
        end = (target.id, last.at_ms, len(last.readings.values))
        return ReadingPage(page.values, end)
    return page


def rates(services: Services, chosen: Sequence[Target], request: RatesRequest) -> list[TargetRates]:
    """Return the rates of the counters of targets. Raises StoreError."""
    return stored_rates.of_targets(services.engine, chosen, request)


def _begun(services: Services, poll: TargetPoll, after: ReadingKey) -> TargetPoll:
    """Return the poll that the page before began, if it is of this target and still stored."""
    target_id, at_ms, _ = after
    is_same = poll.stored is not None and poll.stored.at_ms == at_ms
    if poll.target.id != target_id or is_same:
        return poll
    found = polls_of_span.between(services.engine, target_id, at_ms, at_ms + 1, 1)
    return TargetPoll(poll.target, found[0] if found else None)


def _page(found: Iterator[Value], limit: int, after: ReadingKey | None) -> ReadingPage:
    shown: list[Value] = []
    for value in found:
        if after is not None and value.key <= after:
            continue
        if len(shown) == limit:
            return ReadingPage(shown, shown[-1].key)
        shown.append(value)
    return ReadingPage(shown, None)
