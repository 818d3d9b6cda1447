"""Rates of targets, computed from stored readings: one statement for the polls of all targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Engine

from poller.db.history import polls_of_span
from poller.db.inventory import targets
from poller.db.inventory.targets import Target
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
class RatesRequest:
    """A request for rates. Without `since_ms` it covers the last few polls."""

    select: Callable[[Collection[str]], Collection[str]] = _all  # of the counters' names
    limit: int = 200  # lines of all targets together
    since_ms: int = 0
    offset: int = 0  # lines to skip, of all targets together


@dataclass(frozen=True, slots=True)
class TargetRates:
    """The rates of one target. `names` lists all its counters."""

    target: Target
    polls: int
    names: Collection[str]
    result: RateResult
    cut: bool = False  # the span has more polls than are read


def of_device(engine: Engine, device: str, request: RatesRequest) -> list[TargetRates]:
    """Return the rates of a device's targets. Raises NotFound."""
    return of_targets(engine, targets.of_device(engine, device), request)


def of_targets(
    engine: Engine, chosen: Sequence[Target], request: RatesRequest
) -> list[TargetRates]:
    """Return the rates of each target, in order. A target that was never polled has no lines."""
    ids = [target.id for target in chosen]
    polls = maximum_polls(request)
    stored = polls_of_span.newest(engine, ids, polls, request.since_ms)
    return from_stored(chosen, stored, request)


def maximum_polls(request: RatesRequest) -> int:
    """Return how many polls of a target are read: one more than there are rates."""
    rates_shown = MAXIMUM_POLLS if request.since_ms else RECENT_RATES
    return rates_shown + 1


def from_stored(
    chosen: Sequence[Target], stored: Mapping[int, Sequence[Stored]], request: RatesRequest
) -> list[TargetRates]:
    """Compute the rates of targets from their readings. `select` sees the counters of all
    targets.
    """
    all_names: dict[str, None] = {}
    for target in chosen:
        all_names.update(dict.fromkeys(_counter_names(stored.get(target.id, ()))))
    names = frozenset(request.select(all_names))

    rates_of_targets: list[TargetRates] = []
    lines_left = request.limit
    lines_to_skip = request.offset
    for target in chosen:
        part = replace(request, limit=lines_left, offset=max(0, lines_to_skip))
        target_rates = _rates_of_target(target, stored.get(target.id, ()), names, part)
        lines_left -= len(target_rates.result.lines)
        lines_to_skip -= target_rates.result.total
        rates_of_targets.append(target_rates)
    return rates_of_targets


def _rates_of_target(
    target: Target, stored: Sequence[Stored], names: frozenset[str], request: RatesRequest
) -> TargetRates:
    # When the limit was reached, the oldest poll serves only as the start of the next one's rate.
    is_cut = len(stored) == maximum_polls(request)
    first_ms = stored[0].at_ms + 1 if is_cut else 0
    query = RateQuery(
        target.max_ms or target.interval_ms,
        series_identity.identity_option(target.options),
        lambda series: series.name in names,
        request.limit,
        max(request.since_ms, first_ms),
        request.offset,
    )
    polls = [(poll.at_ms, poll.readings) for poll in stored]
    result = rates.compute(polls, query)
    return TargetRates(
        target=target,
        polls=len(stored),
        names=_counter_names(stored),
        result=result,
        cut=is_cut and bool(request.since_ms),
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
