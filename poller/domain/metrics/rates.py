"""The polls of one target to lines of rates: one line for each counter, wherever it stood in its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.metrics import counters
from poller.domain.metrics.counter_evidence import Finder, Witnesses
from poller.domain.metrics.counters import Point, Rate
from poller.domain.metrics.reading import Kind, Labels, ReadingSet, Series, SeriesSet
from poller.domain.metrics.series_identity import Identity, Key, keys

#: An instant in UTC milliseconds, and what was read then.
Poll = tuple[int, ReadingSet]


@dataclass(frozen=True, slots=True)
class Question:
    """Which rates are asked for: of which counters, at most how many of them behind the first so many, since when."""

    interval_ms: int
    by: Identity = Identity.IF_NAME
    wanted: Callable[[Series], bool] = lambda series: True
    most: int = 1000
    since_ms: int = 0
    skip: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A counter, named as in its newest poll, and its rates, oldest first; there is at least one."""

    series: Series
    known_by: Labels  # what of its labels tells it from others
    rates: Sequence[Rate]

    @property
    def newest(self) -> Rate:
        return self.rates[-1]

    def mean(self) -> float | None:
        """Growth by time, of the spans whose rate is known."""
        known = [
            (rate.per_second, rate.seconds) for rate in self.rates if rate.per_second is not None
        ]
        seconds = sum(each for _, each in known)
        return sum(each * length for each, length in known) / seconds if seconds else None

    def highest(self) -> float | None:
        return max(
            (rate.per_second for rate in self.rates if rate.per_second is not None), default=None
        )


@dataclass(frozen=True, slots=True)
class Answer:
    lines: list[Line]
    total: int  # counters there are, shown or not


@dataclass(slots=True)
class _Counter:
    series: Series
    width: int = 0
    points: list[Point] = field(default_factory=list)


_Counters = Mapping[Key, tuple[Series, Witnesses]]


def answer(polls: Sequence[Poll], asked: Question) -> Answer:
    """Of polls, oldest first. The counters stand as in the newest poll, and behind them those that it lacks."""
    shapes: dict[int, _Counters] = {}
    for _, readings in reversed(polls):
        if readings.series.id not in shapes:
            shapes[readings.series.id] = _counters(readings.series, asked)
    names = dict.fromkeys(key for shape in shapes.values() for key in shape)
    shown = list(names)[asked.skip : asked.skip + asked.most]
    lines = [_line(key, _gathered(key, polls, shapes), asked) for key in shown]
    return Answer([line for line in lines if line.rates], len(names))


def _counters(shape: SeriesSet, asked: Question) -> _Counters:
    finder = Finder(shape)
    return {
        key: (series, finder.of(at, series))
        for at, (key, series) in enumerate(zip(keys(shape, asked.by), shape.series, strict=True))
        if series.kind is Kind.COUNTER and asked.wanted(series)
    }


def _gathered(key: Key, polls: Sequence[Poll], shapes: Mapping[int, _Counters]) -> _Counter:
    """Its samples in all polls that have it. An older width counts while a newer one is not known."""
    counter = _Counter(Series(key[0], key[1], Kind.COUNTER))
    for at_ms, readings in polls:
        found = shapes[readings.series.id].get(key)
        if found is not None:
            counter.series, witnesses = found
            counter.width = counter.series.width or counter.width
            counter.points.append(witnesses.point(at_ms, readings.values))
    return counter


def _line(key: Key, counter: _Counter, asked: Question) -> Line:
    known = counters.rates(counter.points, counter.width, asked.interval_ms)
    return Line(
        counter.series, key[1], tuple(rate for rate in known if rate.at_ms >= asked.since_ms)
    )
