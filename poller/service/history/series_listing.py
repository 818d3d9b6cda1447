"""Series of targets over a range, for the command line and the API: lines of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from poller.db.history.series_of_range import SeriesReader
from poller.db.inventory.targets import Target
from poller.domain.history.resolution import KeptSpans
from poller.domain.metrics.reading import Kind, Series
from poller.domain.series import series_plan
from poller.domain.series.series_plan import Range, SeriesPlan

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.domain.series.series_line import SeriesLine

_DAY_MS = 86_400_000
DEFAULT_LINES = 50
MOST_LINES = 200
#: Points of all lines of an answer: an answer of JSON has some 40 MB at most.
MOST_CELLS = 300_000


@dataclass(frozen=True, slots=True)
class SeriesQuestion:
    """Which series, over which range. `top` wants those with the highest mean."""

    range: Range
    metric: str = ""  # a part of the name
    labels: Mapping[str, str] = field(default_factory=dict)
    rate: bool = False  # counters only
    top: int = 0
    limit: int = DEFAULT_LINES
    offset: int = 0

    def selects(self, series: Series) -> bool:
        """Whether a series is asked for."""
        if self.metric not in series.name or series.kind is Kind.INFO:
            return False
        if self.rate and series.kind is not Kind.COUNTER:
            return False
        labels = dict(series.labels)
        return all(labels.get(key) == value for key, value in self.labels.items())


@dataclass(frozen=True, slots=True)
class TargetLine:
    """A line and the target that it is of."""

    target: Target
    line: SeriesLine


@dataclass(frozen=True, slots=True)
class SeriesAnswer:
    """Lines of a range, how they were read, and whether there are more."""

    plan: SeriesPlan
    lines: Sequence[TargetLine]
    more: bool


def kept_spans(services: Services) -> KeptSpans:
    """Return how far back each form of history reaches, from the settings."""
    settings = services.settings
    return KeptSpans(
        raw_ms=round(settings.readings_days * _DAY_MS),
        five_minutes_ms=round(settings.history_5m_days * _DAY_MS),
        hour_ms=round(settings.history_1h_days * _DAY_MS),
    )


def plan_of(services: Services, chosen: Sequence[Target], asked: Range, now_ms: int) -> SeriesPlan:
    """Return how a range of these targets is read. Raises InvalidInput."""
    interval_ms = min((target.interval_ms for target in chosen), default=60_000)
    return series_plan.plan(asked, interval_ms, kept_spans(services), now_ms)


def series(
    services: Services, chosen: Sequence[Target], question: SeriesQuestion, now_ms: int
) -> SeriesAnswer:
    """Return the series of targets over a range. Raises InvalidInput, StoreError."""
    plan = plan_of(services, chosen, question.range, now_ms)
    reader = SeriesReader(services.engine, plan, question.selects)
    most = max(1, MOST_CELLS // (plan.points or 1_500))
    if question.top:
        return _top(plan, _lines(reader, chosen), min(question.top, most))
    return _page(plan, _lines(reader, chosen), min(question.limit, most), question.offset)


def _lines(reader: SeriesReader, chosen: Sequence[Target]) -> Iterator[TargetLine]:
    for target in chosen:
        for line in reader.lines(target):
            yield TargetLine(target, line)


def _top(plan: SeriesPlan, found: Iterator[TargetLine], count: int) -> SeriesAnswer:
    """Keep the lines with the highest mean; states have none and are left out."""
    best: list[tuple[float, TargetLine]] = []
    for each in found:
        mean = each.line.mean()
        if mean is None:
            continue
        best.append((mean, each))
        if len(best) > 2 * count:
            best = _highest(best, count)
    return SeriesAnswer(plan, [each for _, each in _highest(best, count)], False)


def _highest(ranked: list[tuple[float, TargetLine]], count: int) -> list[tuple[float, TargetLine]]:
    return sorted(ranked, key=lambda pair: pair[0], reverse=True)[:count]


def _page(plan: SeriesPlan, found: Iterator[TargetLine], limit: int, offset: int) -> SeriesAnswer:
    lines: list[TargetLine] = []
    for place, each in enumerate(found):
        if place < offset:
            continue
        if len(lines) == limit:
            return SeriesAnswer(plan, lines, True)
        lines.append(each)
    return SeriesAnswer(plan, lines, False)
