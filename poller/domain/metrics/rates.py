"""The polls of one target to lines of rates: one line per counter, whatever its row is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.metrics import counters
from poller.domain.metrics.counter_evidence import EvidenceColumns, EvidenceFinder
from poller.domain.metrics.counters import Point, Rate
from poller.domain.metrics.reading import Kind, Labels, ReadingSet, Series, SeriesSet
from poller.domain.metrics.series_identity import Identity, Key, series_keys

#: An instant in UTC milliseconds, and the readings of that poll.
Poll = tuple[int, ReadingSet]


def _every(series: Series) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RateQuery:
    """Selects counters and rates: at most `limit` counters after the first `offset`."""

    interval_ms: int
    by: Identity = Identity.IF_NAME
    selects: Callable[[Series], bool] = _every
    limit: int = 1000
    since_ms: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A counter, named as in its newest poll, and its rates, oldest first; at least one."""

    series: Series
    known_by: Labels  # the labels that identify the counter
    rates: Sequence[Rate]

    @property
    def newest(self) -> Rate:
        """The rate of the last poll."""
        return self.rates[-1]

    def mean(self) -> float | None:
        """Return growth by time, over the spans with a rate."""
        spans = [
            (rate.per_second, rate.seconds) for rate in self.rates if rate.per_second is not None
        ]
        total_s = sum(seconds for _, seconds in spans)
        if not total_s:
            return None

        growth = sum(per_second * seconds for per_second, seconds in spans)
        return growth / total_s

    def highest(self) -> float | None:
        """Return the highest rate, or None without any rate."""
        values = [rate.per_second for rate in self.rates if rate.per_second is not None]
        return max(values, default=None)


@dataclass(frozen=True, slots=True)
class RateResult:
    lines: list[Line]
    total: int  # all selected counters, with or without a line


@dataclass(slots=True)
class _Counter:
    series: Series
    width: int = 0
    points: list[Point] = field(default_factory=list)


_Counters = Mapping[Key, tuple[Series, EvidenceColumns]]


def compute(polls: Sequence[Poll], query: RateQuery) -> RateResult:
    """Return the rates of polls, oldest first.

    The counters have the order of the newest poll; those of older polls only come last.
    """
    shapes: dict[int, _Counters] = {}
    for _, readings in reversed(polls):
        if readings.series.id not in shapes:
            shapes[readings.series.id] = _counters(readings.series, query)

    keys: dict[Key, None] = {}
    for shape in shapes.values():
        keys.update(dict.fromkeys(shape))
    shown = list(keys)[query.offset : query.offset + query.limit]

    lines = []
    for key in shown:
        line = _line(key, _samples(key, polls, shapes), query)
        if line.rates:
            lines.append(line)
    return RateResult(lines, len(keys))


def _counters(shape: SeriesSet, query: RateQuery) -> _Counters:
    """Return the selected counters of a shape."""
    finder = EvidenceFinder(shape)
    keys = series_keys(shape, query.by)
    selected = {}
    for index, series in enumerate(shape.series):
        if series.kind is Kind.COUNTER and query.selects(series):
            selected[keys[index]] = (series, finder.columns(index, series))
    return selected


def _samples(key: Key, polls: Sequence[Poll], shapes: Mapping[int, _Counters]) -> _Counter:
    """Return the samples of a counter in all polls. An older width counts while the newest is 0."""
    name, labels = key
    counter = _Counter(Series(name, labels, Kind.COUNTER))

    for at_ms, readings in polls:
        counter_columns = shapes[readings.series.id].get(key)
        if counter_columns is None:
            continue
        counter.series, columns = counter_columns
        counter.width = counter.series.width or counter.width
        counter.points.append(columns.point(at_ms, readings.values))
    return counter


def _line(key: Key, counter: _Counter, query: RateQuery) -> Line:
    _, labels = key
    shown = []
    for rate in counters.rates(counter.points, counter.width, query.interval_ms):
        if rate.at_ms >= query.since_ms:
            shown.append(rate)
    return Line(counter.series, labels, tuple(shown))
