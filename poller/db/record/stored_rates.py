"""Rates of targets, computed from stored readings: one statement for the polls of all targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Engine

from poller.db.inventory import targets
from poller.db.inventory.targets import Target
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.metrics import rates, series_identity
from poller.domain.metrics.rates import RateQuery, RateResult
from poller.domain.metrics.reading import Kind

#: Rates shown for the last polls of a target.
RECENT_RATES = 12
#: Polls of a target that a view of a span reads at most.
MAXIMUM_POLLS = 2000


def _all(names: Collection[str]) -> Collection[str]:
    return names


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for rates. Without `since_ms` it covers the last few polls."""

    choose: Callable[[Collection[str]], Collection[str]] = _all  # of the counters' names
    most: int = 200  # lines of all targets together
    since_ms: int = 0
    skip: int = 0  # lines to leave out, of all targets together


@dataclass(frozen=True, slots=True)
class Rated:
    """The rates of one target. `names` lists all its counters."""

    target: Target
    polls: int
    names: Collection[str]
    answer: RateResult
    cut: bool = False  # the span has more polls than are read


def of_device(engine: Engine, device: str, asked: Asked) -> list[Rated]:
    """Return the rates of a device's targets. Raises NotFound."""
    return of_targets(engine, targets.of_device(engine, device), asked)


def of_targets(engine: Engine, chosen: Sequence[Target], asked: Asked) -> list[Rated]:
    """Return the rates of each target, in order. A target that was never polled has no lines."""
    ids = [target.id for target in chosen]
    polls = maximum_polls(asked)
    stored = stored_readings.history(engine, ids, polls, asked.since_ms)
    return from_stored(chosen, stored, asked)


def maximum_polls(asked: Asked) -> int:
    """Return how many polls of a target are read: one more than there are rates."""
    rates_shown = MAXIMUM_POLLS if asked.since_ms else RECENT_RATES
    return rates_shown + 1


def from_stored(
    chosen: Sequence[Target], stored: Mapping[int, Sequence[Stored]], asked: Asked
) -> list[Rated]:
    """Compute the rates of targets from their readings. `choose` sees the counters of all
    targets.
    """
    all_names: dict[str, None] = {}
    for target in chosen:
        all_names.update(dict.fromkeys(_counter_names(stored.get(target.id, ()))))
    names = frozenset(asked.choose(all_names))

    rated: list[Rated] = []
    lines_left = asked.most
    lines_to_skip = asked.skip
    for target in chosen:
        part = replace(asked, most=lines_left, skip=max(0, lines_to_skip))
        result = _rates_of_target(target, stored.get(target.id, ()), names, part)
        lines_left -= len(result.answer.lines)
        lines_to_skip -= result.answer.total
        rated.append(result)
    return rated


def _rates_of_target(
    target: Target, stored: Sequence[Stored], names: frozenset[str], asked: Asked
) -> Rated:
    # When the limit was reached, the oldest poll serves only as the start of the next one's rate.
    is_cut = len(stored) == maximum_polls(asked)
    first_ms = stored[0].at_ms + 1 if is_cut else 0
    question = RateQuery(
        target.max_ms or target.interval_ms,
        series_identity.identity_option(target.options),
        lambda series: series.name in names,
        asked.most,
        max(asked.since_ms, first_ms),
        asked.skip,
    )
    polls = [(poll.at_ms, poll.readings) for poll in stored]
    answer = rates.compute(polls, question)
    return Rated(
        target=target,
        polls=len(stored),
        names=_counter_names(stored),
        answer=answer,
        cut=is_cut and bool(asked.since_ms),
    )


def _counter_names(stored: Sequence[Stored]) -> Collection[str]:
    """Return the counters of the newest poll, then those of older polls that it lacks."""
    shapes = {poll.readings.series.id: poll.readings.series for poll in reversed(stored)}
    names: dict[str, None] = {}
    for shape in shapes.values():
        for series in shape.series:
            if series.kind is Kind.COUNTER:
                names[series.name] = None
    return names
