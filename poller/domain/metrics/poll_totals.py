"""Counts of polls by collector since the board was made: outcomes, error codes, times.

One round of a batch is one increment of a few fields. The fields are those of the Redis hash
`poll_totals`:

| field                   | value                                                                |
|-------------------------|----------------------------------------------------------------------|
| `<collector>|end|<outcome>` | polls that ended so                                              |
| `<collector>|code|<code>`   | attempts that failed with this error code                        |
| `<collector>|<time>|<n>`    | values of a time (see `Time`) in the n-th bucket of `EDGES_MS`   |
| `<collector>|<time>|ms`     | the sum of these values, in milliseconds                         |
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.record.run import Run

#: Upper edges of the buckets of all times, in milliseconds. One more bucket has no edge.
EDGES_MS = (10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000)


class Time(enum.StrEnum):
    """A time of a poll that is counted in buckets."""

    DURATION = "took"  # of each attempt, from its start to its end
    QUEUE_WAIT = "waited"  # of first attempts, from the claim to the start
    LATENESS = "late"  # of first attempts, from the slot to the start


@dataclass(slots=True)
class TimeTotals:
    """Values of one time. Each value is in one bucket."""

    buckets: Counter[int] = field(default_factory=Counter)  # index in EDGES_MS -> values
    sum_ms: int = 0

    def cumulative(self) -> list[int]:
        """The number of values up to each edge, then the number of all values."""
        counts = []
        total = 0
        for index in range(len(EDGES_MS) + 1):
            total += self.buckets[index]
            counts.append(total)
        return counts

    def quantile_ms(self, share: float) -> float | None:
        """The value that this share of all values does not exceed, about; None without values.

        Values are taken as spread evenly over their bucket. Infinity is one above the last edge.
        """
        rank = share * self.buckets.total()
        if not rank:
            return None
        below = 0
        for index, edge_ms in enumerate(EDGES_MS):
            number = self.buckets[index]
            if number and below + number >= rank:
                lower_ms = EDGES_MS[index - 1] if index else 0
                return lower_ms + (edge_ms - lower_ms) * (rank - below) / number
            below += number
        return math.inf


@dataclass(slots=True)
class PollTotals:
    """Counts of one collector."""

    outcomes: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    times: dict[Time, TimeTotals] = field(default_factory=lambda: {t: TimeTotals() for t in Time})

    @property
    def polls(self) -> int:
        """Polls that ended with an answer of the device, or without one."""
        return sum(self.outcomes[result] for result in ("ok", "partial", "failed"))

    @property
    def answered(self) -> int:
        """Polls that the device answered, in full or in part."""
        return self.outcomes["ok"] + self.outcomes["partial"]


def of_round(collector: str, runs: Sequence[Run], finished: Collection[int]) -> dict[str, int]:
    """The increments of one round. Runs of targets outside of `finished` are tried again."""
    first_runs = [run for run in runs if run.attempt == 1]
    outcomes = Counter(run.outcome.value for run in runs if run.target_id in finished)
    codes = Counter(run.error_code for run in runs if run.error_code)

    counts = of_outcomes(collector, outcomes)
    for code, number in codes.items():
        counts[f"{collector}|code|{code}"] = number
    _add_times(counts, f"{collector}|{Time.DURATION}|", [run.collect_ms for run in runs])
    _add_times(counts, f"{collector}|{Time.QUEUE_WAIT}|", [run.queue_ms for run in first_runs])
    late_ms = [max(0, run.started_ms - run.plan_ms) for run in first_runs]
    _add_times(counts, f"{collector}|{Time.LATENESS}|", late_ms)
    return counts


def of_outcomes(collector: str, outcomes: Mapping[str, int]) -> dict[str, int]:
    """The increments for polls that ended."""
    return {f"{collector}|end|{outcome}": number for outcome, number in outcomes.items()}


def _add_times(counts: dict[str, int], prefix: str, values_ms: Sequence[int]) -> None:
    buckets = Counter([bisect_left(EDGES_MS, value) for value in values_ms])
    for index, number in buckets.items():
        counts[f"{prefix}{index}"] = number
    sum_ms = sum(values_ms)
    if sum_ms:
        counts[f"{prefix}ms"] = sum_ms


def parse(fields: Iterable[tuple[str, int]]) -> dict[str, PollTotals]:
    """The counts of every collector. A field of a later release is left out."""
    totals: defaultdict[str, PollTotals] = defaultdict(PollTotals)
    for name, value in fields:
        collector, _, kind = name.partition("|")
        group, _, member = kind.partition("|")
        if member:
            _fill(totals[collector], group, member, value)
    return dict(totals)


def _fill(totals: PollTotals, group: str, member: str, value: int) -> None:
    if group == "end":
        totals.outcomes[member] = value
    elif group == "code":
        totals.codes[member] = value
    elif group in totals.times:
        times = totals.times[Time(group)]
        if member == "ms":
            times.sum_ms = value
        elif member.isdecimal():
            times.buckets[int(member)] = value
