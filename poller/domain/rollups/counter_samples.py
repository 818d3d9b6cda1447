"""The counters of a target as columns, each with the evidence that decides about a reset.

Counters of one interface share their evidence, so it is computed once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from poller.domain.metrics.counter_evidence import (
    NO_CONNECTOR,
    SPEED_IS_MORE,
    EvidenceColumns,
)
from poller.domain.metrics.counters import UPTIME_RANGE
from poller.domain.rollups.sample_columns import (
    Floats,
    Group,
    Integers,
    LinedUpPolls,
    SeriesRef,
)


@dataclass(frozen=True, slots=True)
class CounterSamples:
    """Samples of counters. NaN: not in the poll; a limit of 0: an unknown speed."""

    at_ms: Integers  # [polls]
    refs: Sequence[SeriesRef]
    values: Floats  # [counters, polls]
    widths: Integers  # [counters]: 32, 64 or 0
    uptime_cs: Floats  # [polls]
    discontinuity_cs: Floats  # [rows, polls]
    discontinuity_of: Integers  # [counters]: the row of each counter
    max_per_s: Floats  # [links, polls]
    max_per_s_of: Integers  # [counters]: the link of each counter

    def part(self, counters: Integers, polls: Integers) -> CounterSamples:
        """Return the samples of some counters in some polls."""
        return CounterSamples(
            at_ms=self.at_ms[polls],
            refs=[self.refs[counter] for counter in counters],
            values=self.values[np.ix_(counters, polls)],
            widths=self.widths[counters],
            uptime_cs=self.uptime_cs[polls],
            discontinuity_cs=self.discontinuity_cs[:, polls],
            discontinuity_of=self.discontinuity_of[counters],
            max_per_s=self.max_per_s[:, polls],
            max_per_s_of=self.max_per_s_of[counters],
        )


#: What each shape says of one counter; None: the shape lacks the counter.
_Evidence = Sequence[EvidenceColumns | None]


def counter_samples(polls: LinedUpPolls) -> CounterSamples:
    """Return the counters of lined-up polls, with their evidence."""
    found = polls.series(Group.COUNTER)
    keys = list(found)
    by_shape = polls.evidence(keys)
    evidence = list(zip(*by_shape, strict=True))
    links, link_of = _distinct(evidence, _link)
    rows, row_of = _distinct(evidence, _row)
    return CounterSamples(
        at_ms=polls.at_ms,
        refs=list(found.values()),
        values=polls.rows(keys),
        widths=polls.widths(keys),
        uptime_cs=_uptime(polls, by_shape),
        discontinuity_cs=_numbers(polls, rows, _row),
        discontinuity_of=row_of,
        max_per_s=_limits(polls, links),
        max_per_s_of=link_of,
    )


def _link(columns: EvidenceColumns) -> Hashable:
    return (columns.high_speed, columns.speed, columns.connector, columns.bits_each)


def _row(columns: EvidenceColumns) -> int | None:
    return columns.discontinuity


def _distinct(
    evidence: Sequence[_Evidence], part: Callable[[EvidenceColumns], Hashable]
) -> tuple[list[_Evidence], Integers]:
    """Return one counter for each distinct evidence, and the place of each counter's evidence."""
    places: dict[Hashable, int] = {}
    firsts: list[_Evidence] = []
    place_of = np.zeros(len(evidence), np.int64)
    for counter, columns in enumerate(evidence):
        content = tuple(None if each is None else part(each) for each in columns)
        if content not in places:
            places[content] = len(firsts)
            firsts.append(columns)
        place_of[counter] = places[content]
    return firsts, place_of


def _uptime(polls: LinedUpPolls, by_shape: Sequence[_Evidence]) -> Floats:
    """Return the uptime of the device in each poll, as sysUpTime counts it."""
    firsts = [next(filter(None, columns), None) for columns in by_shape]
    uptime = _numbers(polls, [firsts], lambda columns: columns.uptime)
    unit_cs = _constants(polls, [firsts], lambda columns: columns.uptime_unit_cs)
    return np.asarray(np.mod(uptime * unit_cs, UPTIME_RANGE)[0])


def _limits(polls: LinedUpPolls, links: Sequence[_Evidence]) -> Floats:
    """Return what each link can carry in counts a second; 0: unknown."""
    bits_each = _constants(polls, links, lambda columns: columns.bits_each)
    connector = _numbers(polls, links, lambda columns: columns.connector)
    speed = np.nan_to_num(_numbers(polls, links, lambda columns: columns.speed))
    high_speed = np.nan_to_num(_numbers(polls, links, lambda columns: columns.high_speed)) * 1e6
    bits_per_s = np.maximum(high_speed, np.where(speed >= SPEED_IS_MORE, 0.0, speed))
    is_known = (bits_each > 0) & (connector != NO_CONNECTOR)
    limits = np.zeros_like(bits_per_s)
    np.divide(bits_per_s, bits_each, out=limits, where=is_known)
    return limits


def _numbers(
    polls: LinedUpPolls,
    counters: Sequence[_Evidence],
    column: Callable[[EvidenceColumns], int | None],
) -> Floats:
    """Return a column of evidence for each counter; NaN where it is no number from 0 on."""
    by_shape = [
        [None if each is None else column(each) for each in of_shape]
        for of_shape in _by_shape(polls, counters)
    ]
    values = polls.picked(by_shape)
    return np.where((values >= 0) & (values < np.inf), values, np.nan)


def _constants(
    polls: LinedUpPolls, counters: Sequence[_Evidence], constant: Callable[[EvidenceColumns], float]
) -> Floats:
    """Return a number that each shape knows of each counter, for each poll."""
    by_shape = [
        [0.0 if each is None else constant(each) for each in of_shape]
        for of_shape in _by_shape(polls, counters)
    ]
    return polls.spread(by_shape)


def _by_shape(
    polls: LinedUpPolls, counters: Sequence[_Evidence]
) -> list[list[EvidenceColumns | None]]:
    return [[columns[shape] for columns in counters] for shape in range(polls.shapes)]
