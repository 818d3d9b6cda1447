"""The verdicts of `domain/metrics/counters.py` for whole columns of samples at once.

The rules are those of `counters.rate`; a property test holds the two equal. What needs a look at
three samples (a low one that was wrong) is decided by `counters.rates` itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poller.domain.metrics import counters
from poller.domain.metrics.counters import Point, Verdict
from poller.domain.rollups.counter_samples import CounterSamples
from poller.domain.rollups.sample_columns import Floats, Integers

Flags = NDArray[np.bool_]


#: Verdicts in one byte; every one up to GAP has a rate. No enum: numpy takes long to compare with
#: one.
OK, WRAP, GAP, RESET, IMPLAUSIBLE = range(5)
CODES = {
    Verdict.OK: OK,
    Verdict.WRAP: WRAP,
    Verdict.GAP: GAP,
    Verdict.RESET: RESET,
    Verdict.IMPLAUSIBLE: IMPLAUSIBLE,
}


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of counters that have samples in the same polls: each from one sample to the next."""

    counters: Integers  # the place of each in the samples
    at_ms: Integers  # [steps + 1]
    codes: NDArray[np.uint8]  # [counters, steps]
    growth: Floats  # [counters, steps]; 0 without a rate


def judge(samples: CounterSamples, interval_ms: int) -> list[Steps]:
    """Return the steps of all counters. `interval_ms` is the planned time between two polls."""
    judged = []
    for counters_of_group, polls in _groups(samples.values):
        if len(polls) < 2:
            continue
        whole = len(polls) == len(samples.at_ms) and len(counters_of_group) == len(samples.refs)
        part = samples if whole else samples.part(counters_of_group, polls)
        codes, growth = _Judge(part, interval_ms).steps()
        judged.append(Steps(counters_of_group, part.at_ms, codes, growth))
    return judged


def _groups(values: Floats) -> Iterator[tuple[Integers, Integers]]:
    """Yield counters with samples in the same polls, and those polls."""
    finite = np.isfinite(values)
    whole = finite.all(axis=1)
    if whole.any():
        yield np.flatnonzero(whole), np.arange(values.shape[1])
    groups: dict[bytes, list[int]] = {}
    for counter in np.flatnonzero(~whole):
        groups.setdefault(finite[counter].tobytes(), []).append(int(counter))
    for group in groups.values():
        yield np.array(group), np.flatnonzero(finite[group[0]])


class _Judge:
    """Judges the steps of counters whose samples are all finite numbers."""

    def __init__(self, samples: CounterSamples, interval_ms: int) -> None:
        self._samples = samples
        self._interval_ms = interval_ms
        step_ms = np.diff(samples.at_ms)
        self._seconds = step_ms / 1000
        self._has_gap = (step_ms > counters.GAP_INTERVALS * interval_ms) & (interval_ms > 0)
        self._capacity = _capacity(samples, self._seconds)
        self._restarted = _restarted(samples.uptime_cs, self._seconds)
        changed = _changed(samples.discontinuity_cs)
        self._set_back = changed if changed.any() else None

    def steps(self) -> tuple[NDArray[np.uint8], Floats]:
        """Return the codes and the growth of all steps."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            growth = np.diff(self._samples.values, axis=1)
            codes = np.zeros(growth.shape, np.uint8)
            fell = growth < 0
            falling = np.flatnonzero(fell.any(axis=1))
            if len(falling):
                codes[falling], growth[falling] = self._fallen(falling, growth[falling])
            self._judge_growth(codes, growth)
            self._find_resets(codes)
            codes[:, self._seconds <= 0] = IMPLAUSIBLE
            growth[codes > GAP] = 0.0
        for counter in falling:
            self._correct_wrong_samples(int(counter), codes, growth, fell[counter])
        return codes, growth

    def _fallen(self, rows: Integers, growth: Floats) -> tuple[NDArray[np.uint8], Floats]:
        """Decide for counters that went down: full, or set back."""
        widths = self._samples.widths[rows][:, None]
        ranges = np.where(widths > 0, 2.0**widths, 0.0)
        fell = growth < 0
        grown = np.where(fell, growth + ranges, growth)
        capacity = self._capacity[self._samples.max_per_s_of[rows]]
        uptime = self._samples.uptime_cs
        has_uptime = ~np.isnan(uptime[:-1]) & ~np.isnan(uptime[1:])
        is_full = np.where(
            np.isnan(capacity),
            (widths == 32) & has_uptime & (grown <= counters.ALMOST_FULL * ranges),
            (capacity < ranges) & (grown <= capacity),
        )
        is_full &= (widths > 0) & (grown >= 0)
        codes = np.where(fell, np.where(is_full, WRAP, RESET), OK)
        return codes.astype(np.uint8), grown

    def _judge_growth(self, codes: NDArray[np.uint8], growth: Floats) -> None:
        """Find the averages and the impossible among steps that have a growth."""
        judged = codes <= WRAP
        if self._has_gap.any():
            codes[judged & self._has_gap] = GAP
        for link, capacity in enumerate(self._capacity):
            rows = np.flatnonzero(self._samples.max_per_s_of == link)
            may_be_full_twice = capacity >= 2.0**32
            if may_be_full_twice.any():
                narrow = rows[self._samples.widths[rows] == 32]
                averaged = judged[narrow] & may_be_full_twice
                codes[narrow] = np.where(averaged, GAP, codes[narrow])
            too_much = growth[rows] > capacity
            if too_much.any():
                impossible = judged[rows] & too_much
                codes[rows] = np.where(impossible, IMPLAUSIBLE, codes[rows])
        endless = ~np.isfinite(growth / self._seconds)
        if endless.any():
            codes[judged & endless] = IMPLAUSIBLE

    def _find_resets(self, codes: NDArray[np.uint8]) -> None:
        """Mark the resets that the device's own evidence proves."""
        if self._restarted.any():
            codes[:, self._restarted] = RESET
        if self._set_back is not None:
            codes[self._set_back[self._samples.discontinuity_of]] = RESET

    def _correct_wrong_samples(
        self, counter: int, codes: NDArray[np.uint8], growth: Floats, fell: Flags
    ) -> None:
        """Let the scalar engine decide where a counter returned after a fall without a reason."""
        values = self._samples.values[counter]
        fell_back = fell & (codes[counter] == RESET)
        since_fall = values[2:] - values[:-2]
        returned = fell_back[:-1] & (since_fall >= 0) & (since_fall <= values[:-2] - values[1:-1])
        unusual = np.zeros(len(fell), bool)
        unusual[:-1] |= returned
        unusual[1:] |= returned
        for first, last in _runs(unusual):
            self._judge_window(counter, first, last, codes, growth)

    def _judge_window(
        self, counter: int, first: int, last: int, codes: NDArray[np.uint8], growth: Floats
    ) -> None:
        """Judge the steps from `first` to `last` of one counter by `counters.rates`."""
        points = [self._point(counter, poll) for poll in range(first, last + 2)]
        width = int(self._samples.widths[counter])
        results = list(counters.rates(points, width, self._interval_ms))
        for step, result in enumerate(results[1:], first):
            codes[counter, step] = CODES[result.verdict]
            if result.per_second is None:
                growth[counter, step] = 0.0
            elif result.seconds > self._seconds[step]:
                self._average(counter, step, codes, growth)

    def _average(self, counter: int, step: int, codes: NDArray[np.uint8], growth: Floats) -> None:
        """Spread the growth over a wrong sample on the two steps beside the sample."""
        values = self._samples.values[counter]
        whole = float(values[step + 1] - values[step - 1])
        share = self._seconds[step - 1] / (self._seconds[step - 1] + self._seconds[step])
        before = np.floor(whole * share + 0.5) if whole == np.floor(whole) else whole * share
        codes[counter, step - 1 : step + 1] = GAP
        growth[counter, step - 1] = before
        growth[counter, step] = whole - before

    def _point(self, counter: int, poll: int) -> Point:
        samples = self._samples
        discontinuity = samples.discontinuity_cs[samples.discontinuity_of[counter], poll]
        limit = samples.max_per_s[samples.max_per_s_of[counter], poll]
        return Point(
            at_ms=int(samples.at_ms[poll]),
            value=float(samples.values[counter, poll]),
            uptime_cs=_or_none(samples.uptime_cs[poll]),
            discontinuity_cs=_or_none(discontinuity),
            max_per_s=float(limit) or None,
        )


def _capacity(samples: CounterSamples, seconds: Floats) -> Floats:
    """Return what each link can have carried in each step; NaN for an unknown speed."""
    limit = np.maximum(samples.max_per_s[:, :-1], samples.max_per_s[:, 1:])
    capacity = limit * counters.SPEED_MARGIN * (seconds + counters.REFRESH_S)
    return np.where(limit > 0, capacity, np.nan)


def _restarted(uptime_cs: Floats, seconds: Floats) -> Flags:
    """Return the steps over which the uptime does not continue. See `counters.reset_reason`."""
    before, now = uptime_cs[:-1], uptime_cs[1:]
    elapsed = 100 * seconds
    slack = 100 * counters.UPTIME_SLACK_S + counters.UPTIME_DRIFT * elapsed
    with np.errstate(invalid="ignore"):
        ahead = now - np.mod(before + elapsed, counters.UPTIME_RANGE)
        distance = np.minimum(np.abs(ahead), counters.UPTIME_RANGE - np.abs(ahead))
        soon = ~((before > slack) | (now >= elapsed))
        elsewhere = (
            (now <= elapsed + slack) | (now < before) | (ahead > 100 * counters.ANOTHER_AGENT_S)
        )
    is_known = ~np.isnan(before) & ~np.isnan(now)
    return np.asarray(is_known & np.where(distance <= slack, soon, elsewhere))


def _changed(discontinuity_cs: Floats) -> Flags:
    before, now = discontinuity_cs[:, :-1], discontinuity_cs[:, 1:]
    return np.asarray((before != now) & ~np.isnan(before) & ~np.isnan(now))


def _runs(flags: Flags) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of each run of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    for first, end in edges.reshape(-1, 2):
        yield int(first), int(end) - 1


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
