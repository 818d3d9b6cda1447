"""The verdicts of `domain/metrics/counters.py` for whole columns of samples at once.

The rules are those of `counters.rates`, and a property test holds the two equal: a busy counter of
32 bits falls every minute, and one step at a time would take as long as the poll itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poller.domain.metrics import counters
from poller.domain.metrics.counters import Verdict
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
        step_ms = np.diff(samples.at_ms)
        self._seconds = step_ms / 1000
        self._has_gap = (step_ms > counters.GAP_INTERVALS * interval_ms) & (interval_ms > 0)
        limits = samples.max_per_s
        self._capacity = _capacity(limits[:, :-1], limits[:, 1:], self._seconds)
        uptime = samples.uptime_cs
        self._restarted = _restarted(uptime[:-1], uptime[1:], self._seconds)
        discontinuity = samples.discontinuity_cs
        changed = _changed(discontinuity[:, :-1], discontinuity[:, 1:])
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
        """Find samples that were wrong, as `counters.rates` does: the counter soon returned.

        The growth over such a sample is an average, which the two steps beside it share.
        """
        values = self._samples.values[counter]
        fell_back = fell & (codes[counter] == RESET)
        since_fall = values[2:] - values[:-2]
        returned = fell_back[:-1] & (since_fall >= 0) & (since_fall <= values[:-2] - values[1:-1])
        low = np.flatnonzero(returned) + 1
        low = low[~self._is_reset_over(counter, low)]
        if not len(low):
            return

        whole = values[low + 1] - values[low - 1]
        is_possible = ~(whole > self._capacity_over(counter, low))
        codes[counter, low[~is_possible]] = IMPLAUSIBLE
        growth[counter, low[~is_possible]] = 0.0

        low, whole = low[is_possible], whole[is_possible]
        share = whole * (self._seconds[low - 1] / self._seconds_over(low))
        share = np.where(whole == np.floor(whole), np.floor(share + 0.5), share)
        codes[counter, low - 1] = codes[counter, low] = GAP
        growth[counter, low - 1] = share
        growth[counter, low] = whole - share

    def _is_reset_over(self, counter: int, low: Integers) -> Flags:
        """Whether evidence proves a reset between the polls beside a low sample."""
        samples = self._samples
        uptime = samples.uptime_cs
        restarted = _restarted(uptime[low - 1], uptime[low + 1], self._seconds_over(low))
        discontinuity_cs = samples.discontinuity_cs[samples.discontinuity_of[counter]]
        return restarted | _changed(discontinuity_cs[low - 1], discontinuity_cs[low + 1])

    def _seconds_over(self, low: Integers) -> Floats:
        """Return the time between the polls beside a low sample."""
        return np.asarray((self._samples.at_ms[low + 1] - self._samples.at_ms[low - 1]) / 1000)

    def _capacity_over(self, counter: int, low: Integers) -> Floats:
        """Return what the link can have carried between the polls beside a low sample."""
        limits = self._samples.max_per_s[self._samples.max_per_s_of[counter]]
        return _capacity(limits[low - 1], limits[low + 1], self._seconds_over(low))


def _capacity(before: Floats, now: Floats, seconds: Floats) -> Floats:
    """Return what links can have carried from their limits; NaN for an unknown speed."""
    limit = np.maximum(before, now)
    capacity = limit * counters.SPEED_MARGIN * (seconds + counters.REFRESH_S)
    return np.where(limit > 0, capacity, np.nan)


def _restarted(before: Floats, now: Floats, seconds: Floats) -> Flags:
    """Return the steps over which the uptime does not continue. See `counters.reset_reason`."""
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


def _changed(before: Floats, now: Floats) -> Flags:
    """Return where a discontinuity is known twice and differs."""
    return np.asarray((before != now) & ~np.isnan(before) & ~np.isnan(now))
