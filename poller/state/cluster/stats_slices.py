"""Figures from slices of the statistics, which hold the counters of ten seconds each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from poller.domain.metrics import histogram
from poller.domain.record.overview import LATENESS_EDGES_MS, Lateness, LatenessSum, Point
from poller.state.keys import SLICE_MS

OUTCOMES = ("ok", "partial", "failed", "refused", "duplicate", "stale", "gone")
_SLICE_S = SLICE_MS / 1000

Slice = Mapping[str, str]


def number(text: str | None) -> int:
    """A counter as a number. A damaged counter is 0: it must not hide the others."""
    try:
        return int(text or 0)
    except ValueError:
        return 0


def polls_by_queue(slices: Sequence[Slice]) -> Counter[str]:
    """The number of polls of each queue."""
    polls: Counter[str] = Counter()
    for fields in slices:
        for name, value in fields.items():
            if name.startswith("q:"):
                polls[name.removeprefix("q:")] += number(value)

    return polls


def polls_per_second(slices: Sequence[Slice]) -> float:
    """The rate of polls over complete slices."""
    if not slices:
        return 0.0

    polls = sum(number(fields.get("polls")) for fields in slices)
    return polls / (len(slices) * _SLICE_S)


def outcomes(slices: Sequence[Slice]) -> dict[str, int]:
    """The number of polls by outcome."""
    counts: Counter[str] = Counter()
    for fields in slices:
        for name in OUTCOMES:
            if name not in fields:
                continue
            counts[name] += number(fields[name])

    return dict(counts)


def lateness(slices: Sequence[Slice]) -> Lateness:
    """The distribution of lateness over all slices."""
    buckets: Counter[int] = Counter()
    max_ms = 0.0
    for fields in slices:
        buckets.update(_lateness_buckets(fields))
        max_ms = max(max_ms, float(number(fields.get("lmax"))))

    return Lateness(
        count=buckets.total(),
        p50_ms=min(max_ms, histogram.quantile_ms(buckets, 0.5)),
        p99_ms=min(max_ms, histogram.quantile_ms(buckets, 0.99)),
        max_ms=max_ms,
        bands=histogram.bands(buckets, LATENESS_EDGES_MS),
    )


def lateness_sum(totals: Slice) -> LatenessSum:
    """The number and the sum of all values of the totals, each at its bucket's upper edge."""
    buckets = _lateness_buckets(totals)
    sum_ms = sum(count * histogram.upper_ms(index) for index, count in buckets.items())
    return LatenessSum(sum(buckets.values()), sum_ms)


def points(slices: Sequence[Slice], now_ms: int) -> list[Point]:
    """One point per slice, oldest first, from the first poll on. Later empty slices stay."""
    oldest = now_ms // SLICE_MS - len(slices) + 1
    shown: list[Point] = []
    for slice_number, fields in enumerate(slices, start=oldest):
        if not shown and not fields:
            continue

        at_ms = slice_number * SLICE_MS
        point = Point(
            at_ms=at_ms,
            seconds=min(SLICE_MS, now_ms - at_ms) / 1000,
            polls=number(fields.get("polls")),
            failed=number(fields.get("failed")),
            lateness_p99_ms=histogram.quantile_ms(_lateness_buckets(fields), 0.99),
        )
        shown.append(point)

    return shown


def _lateness_buckets(fields: Slice) -> dict[int, int]:
    buckets = {}
    for name, value in fields.items():
        if name[0] == "l" and name[1:].isdecimal():
            buckets[int(name[1:])] = number(value)

    return buckets
