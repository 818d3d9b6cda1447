"""The increase of every counter in windows of several lengths: PromQL against the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from poller.domain.metrics import rates
from poller.domain.metrics.counters import Rate, Verdict
from poller.domain.metrics.rates import Line, RateQuery
from poller.domain.metrics.reading import Series
from poller.domain.metrics.series_identity import Identity
from tests.integration.store_servers import Prometheus
from tests.integration.watched_routers import INTERVAL, POLLS, Watched

#: Intervals of the windows that are compared.
LENGTHS = (1, 2, 5, 12)
TOLERANCE = 0.01


class Window(NamedTuple):
    """One counter in one window: its growth by the verdicts, and its increase in PromQL."""

    name: str
    row: str
    intervals: int
    at_ms: int  # its end
    expected: float
    actual: float
    verdicts: frozenset[Verdict]

    @property
    def is_off(self) -> bool:
        return abs(self.actual - self.expected) > TOLERANCE * self.expected + 1e-6

    @property
    def error(self) -> float:
        """The difference as a share of the growth."""
        return (self.actual - self.expected) / self.expected if self.expected else 0.0


def lines(watched: Watched) -> list[Line]:
    """Return the rates of all counters of a router, by our own verdicts."""
    return rates.compute(watched.polls, RateQuery(INTERVAL, Identity.IF_INDEX)).lines


def windows(prometheus: Prometheus, watched: Watched, case: str) -> list[Window]:
    """Return every window of every counter that Prometheus has with the label `case`."""
    return list(_windows(prometheus, watched, case))


def off(found: Sequence[Window]) -> list[Window]:
    """Return the windows that differ by more than 1 %."""
    return [window for window in found if window.is_off]


def table(verdict: Verdict, ours: Sequence[Window], theirs: Sequence[Window]) -> str:
    """Return a table of Markdown: remote write beside a scraped exporter, a line per length."""
    rows = [
        f"| window | compared | with a {verdict.value} "
        "| remote write: wrong | worst | scraped exporter: wrong | worst |",
        "|---|---|---|---|---|---|---|",
    ]
    for length in LENGTHS:
        some = [window for window in ours if window.intervals == length]
        marked = sum(verdict in window.verdicts for window in some)
        cells = [f"{length * INTERVAL // 1000} s", f"{len(some):,}", f"{marked:,}"]
        for every in (ours, theirs):
            cells += _errors([window for window in every if window.intervals == length])
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _errors(some: Sequence[Window]) -> list[str]:
    """Return how many windows are off, and the largest difference."""
    worst = max((window.error for window in some), key=abs)
    percent = f"{100 * worst:+.1f} %" if abs(worst) >= 0.0005 else "0.0 %"
    return [f"{len(off(some)):,}", percent]


def _windows(prometheus: Prometheus, watched: Watched, case: str) -> Iterator[Window]:
    found = {_key(line.series): line for line in lines(watched)}
    values = _values(watched)
    compared = 0
    for name in sorted({name for name, _ in found}):
        for length in LENGTHS:
            match = f'{name}{{case="{case}",device="{watched.target.device}"}}'
            query = f"increase({match}[{length * INTERVAL // 1000}s])"
            for row, at_ms, actual in _increases(prometheus, query, watched, length):
                end = (at_ms - watched.polls[0][0]) // INTERVAL
                some = found[name, row].rates[end - length + 1 : end + 1]
                expected = _growth(some, values[name, row])
                verdicts = frozenset(rate.verdict for rate in some)
                compared += 1
                yield Window(name, row, length, at_ms, expected, actual, verdicts)
    assert compared == len(found) * sum(POLLS - length for length in LENGTHS)


def _increases(
    prometheus: Prometheus, query: str, watched: Watched, length: int
) -> Iterator[tuple[str, int, float]]:
    """Yield row, end and increase of all windows that lie within the polls."""
    first_ms, last_ms = watched.polls[length][0], watched.polls[-1][0]
    for series in prometheus.range(query, first_ms, last_ms, INTERVAL):
        for at_s, text in series["values"]:
            yield series["metric"].get("ifIndex", ""), round(at_s * 1000), float(text)


def _growth(found: Sequence[Rate], values: dict[int, float]) -> float:
    """Return the growth of a window: that of the verdicts, and after a reset what is counted."""
    total = 0.0
    for rate in found:
        if rate.per_second is not None:
            total += rate.per_second * rate.seconds
        else:
            assert rate.verdict is Verdict.RESET
            total += values[rate.at_ms]
    return total


def _key(series: Series) -> tuple[str, str]:
    return series.name, dict(series.labels).get("ifIndex", "")


def _values(watched: Watched) -> dict[tuple[str, str], dict[int, float]]:
    """Return the values of each series by instant."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for at_ms, readings in watched.polls:
        for series, value in zip(readings.series.series, readings.values, strict=True):
            found.setdefault(_key(series), {})[at_ms] = value
    return found
