"""Samples between two polls that let a store see a wrap or a reset of a counter as it was.

PromQL reads every fall of a counter as a restart at 0, and no rise as one. A full counter that
started over therefore gets one sample of its range between the two polls; a counter that its device
set back, and that is above its old value again, gets one sample of 0. All other values stay as the
device gave them. Where the evidence does not decide, nothing is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from poller.domain.metrics import counters
from poller.domain.metrics.counter_evidence import EvidenceColumns, EvidenceFinder
from poller.domain.metrics.counters import UPTIME_RANGE, Point, Verdict
from poller.domain.metrics.packed_columns import PackedColumns, may_have_fallen
from poller.domain.metrics.reading import Kind, SeriesSet, pack, unpack

#: Two polls with more intervals between them may have another one between them, which a worker
#: still has in its spool. A wrap is bridged between neighbours only.
NEIGHBOUR_INTERVALS = 1.5
#: Counters of this width wrap in practice.
_NARROW = 32
_CS_MS = 10


class Bridge(NamedTuple):
    """One added sample of the counter in a column of the poll."""

    column: int
    at_ms: int
    value: float


class LastPoll(NamedTuple):
    """The poll before: the values of the columns of a plan, and when the device started."""

    at_ms: int
    boot_ms: int | None
    packed: bytes


@dataclass(frozen=True, slots=True)
class _Counter:
    width: int
    evidence: EvidenceColumns
    is_kept: bool  # the value of the last poll is in LastPoll


class CounterPlan:
    """The counters of a shape, and the columns that the next poll needs to judge them.

    With `all_counters` the values of wide counters are kept, too: `starts` needs them.
    """

    def __init__(self, shape: SeriesSet, all_counters: bool = False) -> None:
        self._width = len(shape)
        finder = EvidenceFinder(shape)
        self._counters: list[_Counter] = []
        for column, series in enumerate(shape.series):
            if series.kind is Kind.COUNTER:
                is_kept = all_counters or series.width == _NARROW
                evidence = finder.columns(column, series)
                self._counters.append(_Counter(series.width, evidence, is_kept))
        groups = self._kept_columns()
        self.columns = [column for group in groups for column in group]
        self._packed_columns = PackedColumns(*groups)
        self._falling = 8 * len(groups[0])  # the end of the counters, in bytes
        self._changing = self._falling + 8 * len(groups[1])
        self._uptime: EvidenceColumns | None = None
        if self._counters and self._counters[0].evidence.uptime is not None:
            self._uptime = self._counters[0].evidence

    def _kept_columns(self) -> tuple[list[int], list[int], list[int]]:
        """Return the columns of counters, of discontinuities, and of all other evidence."""
        kept = [each.evidence for each in self._counters if each.is_kept]
        told = [each.evidence for each in self._counters if each.evidence.discontinuity is not None]
        rest: list[int | None] = []
        for each in (*kept, *told):
            rest += (each.uptime, each.high_speed, each.speed, each.connector)
        return (
            _sorted(each.counter for each in kept),
            _sorted(each.discontinuity for each in told),
            _sorted(rest),
        )

    def last_poll(self, before: LastPoll | None, at_ms: int, values: Sequence[float]) -> LastPoll:
        """Return what the next poll needs of this one."""
        kept = self._packed_columns.cut(pack(values))
        return LastPoll(at_ms, self.boot_ms(before, at_ms, values), kept)

    def boot_ms(self, before: LastPoll | None, at_ms: int, values: Sequence[float]) -> int | None:
        """Return when the device started: the same instant until it restarts; None: unknown."""
        uptime_cs = self._uptime.uptime_cs(values) if self._uptime else None
        if uptime_cs is None:
            return None
        boot_ms = at_ms - round(uptime_cs * _CS_MS)
        if before is None or before.boot_ms is None:
            return boot_ms
        drift_ms = (boot_ms - before.boot_ms) % (UPTIME_RANGE * _CS_MS)
        slack_ms = 1000 * counters.UPTIME_SLACK_S + counters.UPTIME_DRIFT * (at_ms - before.at_ms)
        is_same = min(drift_ms, UPTIME_RANGE * _CS_MS - drift_ms) <= slack_ms
        return before.boot_ms if is_same else boot_ms

    def bridges(
        self, before: LastPoll, now: LastPoll, values: Sequence[float], interval_ms: int
    ) -> list[Bridge]:
        """Return the samples to add between two polls; none for nearly every pair.

        `values` are all values of the poll `now`.
        """
        falling, changing = self._falling, self._changing
        was_told = now.packed[falling:changing] != before.packed[falling:changing]
        if not was_told and not may_have_fallen(before.packed[:falling], now.packed[:falling]):
            return []
        return list(self._judged(before, now.at_ms, values, interval_ms))

    def starts(self, before: LastPoll, now: LastPoll, values: Sequence[float]) -> dict[int, int]:
        """Return when counters started, by column, as far as that is certain.

        A restart since the last poll says nothing about a counter that did not fall: agents start
        anew while the counters of their system count on.
        """
        if now.boot_ms is None:
            return {}
        old: list[float] = []  # made for the first poll after a restart only
        found = {}
        for counter in self._counters:
            evidence = counter.evidence
            told_cs = evidence.discontinuity_cs(values) or 0.0
            start_ms = min(now.boot_ms + round(told_cs * _CS_MS), now.at_ms)
            if start_ms > before.at_ms:
                old = old or self._spread(before)
                last = evidence.point(before.at_ms, old)
                point = evidence.point(now.at_ms, values)
                is_set_back = _was_told(last, point) and _fits(point, start_ms)
                if point.value >= last.value and not is_set_back:
                    continue
            found[evidence.counter] = start_ms
        return found

    def _judged(
        self, before: LastPoll, at_ms: int, values: Sequence[float], interval_ms: int
    ) -> Iterator[Bridge]:
        old = self._spread(before)
        are_neighbours = at_ms - before.at_ms <= NEIGHBOUR_INTERVALS * interval_ms
        for counter in self._counters:
            last = counter.evidence.point(before.at_ms, old)
            now = counter.evidence.point(at_ms, values)
            if _was_told(last, now):
                yield from _set_back(counter.evidence.counter, last, now)
            elif are_neighbours and counter.is_kept and now.value < last.value:
                yield from _filled(counter, last, now, interval_ms)

    def _spread(self, before: LastPoll) -> list[float]:
        """Return the values of the last poll in their columns; NaN for those not kept."""
        values = [math.nan] * self._width
        for column, value in zip(self.columns, unpack(before.packed), strict=True):
            values[column] = value
        return values


def _filled(counter: _Counter, last: Point, now: Point, interval_ms: int) -> Iterator[Bridge]:
    """Yield a full counter at the instant of the wrap, by the mean rate between the polls."""
    verdict = counters.rate(last, now, counter.width, interval_ms).verdict
    span_ms = now.at_ms - last.at_ms
    if verdict is not Verdict.WRAP or span_ms < 2:
        return
    full = 2.0**counter.width
    growth = full - last.value + now.value
    after_ms = round(span_ms * (full - last.value) / growth)
    at_ms = last.at_ms + min(max(after_ms, 1), span_ms - 1)
    yield Bridge(counter.evidence.counter, at_ms, full)


def _set_back(column: int, last: Point, now: Point) -> Iterator[Bridge]:
    """Yield a 0 for a counter that its device set back and that did not fall since."""
    if now.uptime_cs is None or now.discontinuity_cs is None or now.value < last.value:
        return
    start_ms = now.at_ms - round((now.uptime_cs - now.discontinuity_cs) * _CS_MS)
    start_ms = min(max(start_ms, last.at_ms + 1), now.at_ms - 1)
    if start_ms > last.at_ms and _fits(now, start_ms):
        yield Bridge(column, start_ms, 0.0)


def _was_told(last: Point, now: Point) -> bool:
    """Whether the device says that the counter was set back between the polls."""
    told = (last.discontinuity_cs, now.discontinuity_cs)
    return None not in told and last.discontinuity_cs != now.discontinuity_cs


def _fits(now: Point, start_ms: int) -> bool:
    """Whether the link can have carried the whole value since the start; False: unknown speed."""
    if now.max_per_s is None:
        return False
    seconds = (now.at_ms - start_ms) / 1000 + counters.REFRESH_S
    return now.value <= now.max_per_s * counters.SPEED_MARGIN * seconds


def _sorted(columns: Iterable[int | None]) -> list[int]:
    return sorted({column for column in columns if column is not None})
