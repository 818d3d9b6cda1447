"""Two samples of a counter to a rate, with a verdict: true, corrected, averaged or impossible.

A counter only grows, until it starts over: because it is full (wrap) or because its owner restarted
(reset). The difference is worth millions of octets, so this module does not guess: where the
evidence does not decide, there is no rate.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: sysUpTime counts hundredths of a second in 32 bits: it starts over every 497 days.
UPTIME_RANGE = 2.0**32
#: How far sysUpTime may differ from the clock of the worker: a poll takes time, and clocks drift.
UPTIME_SLACK_S = 10.0
UPTIME_DRIFT = 0.02
#: A sysUpTime that is this far ahead is the uptime of another agent, not of a slow poll.
ANOTHER_AGENT_S = 600.0
#: Agents refresh their counters every few seconds, so a poll may see this much more than its share.
REFRESH_S = 10.0
SPEED_MARGIN = 1.1
#: Two samples with more intervals between them have a gap; one lost poll is no gap.
GAP_INTERVALS = 2.5
#: The growth of a wrap, as a share of the range, that is accepted without a known speed.
ALMOST_FULL = 1 / 8


class Verdict(enum.StrEnum):
    """How far a rate can be trusted."""

    OK = "ok"  # the counter grew
    WRAP = "wrap"  # the counter was full and started over: corrected, and as good as ok
    GAP = "gap"  # the samples are too far apart for more than an average
    RESET = "reset"  # the counter was set back: no rate
    IMPLAUSIBLE = "implausible"  # the counter claims more than its link can carry: no rate
    FIRST = "first"  # there is no sample before: no rate


class Point(NamedTuple):
    """One sample, and the evidence of the same poll; None: not in the poll."""

    at_ms: int
    value: float
    uptime_cs: float | None = None
    discontinuity_cs: float | None = None  # sysUpTime when the counter was last set back
    max_per_s: float | None = None  # what the link can carry


class Rate(NamedTuple):
    """Growth per second from the sample before to the sample at `at_ms`; None: no rate."""

    at_ms: int
    seconds: float  # since the sample before; 0 for the first
    verdict: Verdict
    per_second: float | None = None
    reason: str = ""  # of any verdict but ok
    claimed: float | None = None  # the rate that an implausible counter claims


def rates(points: Iterable[Point], width: int, interval_ms: int) -> Iterator[Rate]:
    """Yield a rate for every point, oldest first. A value that is no finite number is skipped."""
    before: Point | None = None
    before_fall: Point | None = None  # the sample before a fall without a reason
    for now in points:
        if not math.isfinite(now.value):
            continue
        result = rate(before, now, width, interval_ms)
        if before_fall and before and _has_returned(before_fall, before, now):
            result = _over_wrong_sample(rate(before_fall, now, width, interval_ms))

        fell = before is not None and now.value < before.value
        before_fall = before if result.verdict is Verdict.RESET and fell else None
        yield result
        before = now


def _has_returned(before_fall: Point, low: Point, now: Point) -> bool:
    """Whether the low sample was wrong, not the counter: some agents answer 0 now and then.

    The counter must be about where it was, not only higher: a small counter soon exceeds its old
    value.
    """
    growth = now.value - before_fall.value
    fall = before_fall.value - low.value
    seconds = (now.at_ms - before_fall.at_ms) / 1000
    return 0 <= growth <= fall and not reset_reason(before_fall, now, seconds)


def _over_wrong_sample(result: Rate) -> Rate:
    if result.per_second is None:
        return result
    return result._replace(
        verdict=Verdict.GAP,
        reason="the sample before it was wrong: the average since the one before",
    )


def rate(before: Point | None, now: Point, width: int, interval_ms: int) -> Rate:
    """Return the rate of two samples.

    `width` is 32, 64 or 0 (unknown), `interval_ms` the planned time between the samples.
    """
    if before is None:
        return Rate(now.at_ms, 0.0, Verdict.FIRST, reason="there is no sample before it")

    seconds = (now.at_ms - before.at_ms) / 1000
    if seconds <= 0:
        reason = "no time has passed since the sample before"
        return Rate(now.at_ms, seconds, Verdict.IMPLAUSIBLE, reason=reason)
    reason = reset_reason(before, now, seconds)
    if reason:
        return Rate(now.at_ms, seconds, Verdict.RESET, reason=reason)

    growth = now.value - before.value
    if growth >= 0:
        return _judged(before, now, growth, Verdict.OK, width, interval_ms)

    # The counter went down: it was full, or it was set back.
    growth = _wrapped(growth, width)
    reason = _no_wrap_reason(growth, before, now, width, seconds)
    if reason:
        return Rate(now.at_ms, seconds, Verdict.RESET, reason=reason)
    return _judged(before, now, growth, Verdict.WRAP, width, interval_ms)


def reset_reason(before: Point, now: Point, seconds: float) -> str:
    """Return why the evidence proves a reset between two polls, or "" if it does not."""
    discontinuities = (before.discontinuity_cs, now.discontinuity_cs)
    if None not in discontinuities and before.discontinuity_cs != now.discontinuity_cs:
        return "the device says that its counters were set back"

    if before.uptime_cs is None or now.uptime_cs is None:
        return ""
    return _restart_reason(before.uptime_cs, now.uptime_cs, 100 * seconds)


def _restart_reason(before_cs: float, now_cs: float, elapsed_cs: float) -> str:
    """Return why the second sysUpTime does not continue the first, or "" if it may.

    A start over after 497 days continues. A slow clock or one that stands still proves nothing: a
    device that is up for longer than the time since the last poll has not restarted since.
    """
    slack = 100 * UPTIME_SLACK_S + UPTIME_DRIFT * elapsed_cs
    ahead = now_cs - (before_cs + elapsed_cs) % UPTIME_RANGE
    if min(abs(ahead), UPTIME_RANGE - abs(ahead)) <= slack:
        # Soon after a restart, another restart would look the same.
        return "" if before_cs > slack or now_cs >= elapsed_cs else "the device restarted"
    if now_cs <= elapsed_cs + slack:
        return "the device restarted"
    if now_cs < before_cs:
        return "sysUpTime went back"
    if ahead > 100 * ANOTHER_AGENT_S:
        return "sysUpTime jumped ahead: another agent answers"
    return ""


def _wrapped(growth: float, width: int) -> float:
    if not width:
        return growth
    return growth + 2.0**width


def _no_wrap_reason(growth: float, before: Point, now: Point, width: int, seconds: float) -> str:
    """Return why a counter that went down was set back and not full, or "" if it was full."""
    if not width or growth < 0:
        return "the counter went down, and it is not known how far it counts"

    capacity = _capacity(before, now, seconds)
    if capacity is not None:
        if capacity >= 2.0**width:
            return "the counter went down, and its link is too fast to tell why"
        if growth > capacity:
            return "the counter went down, and its link is too slow to have filled it"
        return ""

    has_uptime = before.uptime_cs is not None and now.uptime_cs is not None
    if width != 32 or not has_uptime:
        return "the counter went down"
    if growth > ALMOST_FULL * 2.0**width:
        return "the counter went down long before it was full"
    return ""


def _judged(
    before: Point, now: Point, growth: float, verdict: Verdict, width: int, interval_ms: int
) -> Rate:
    """Return the rate of a growth that is not negative: plausible, averaged or impossible."""
    seconds = (now.at_ms - before.at_ms) / 1000
    per_second = growth / seconds
    capacity = _capacity(before, now, seconds)
    if not math.isfinite(per_second):
        return Rate(now.at_ms, seconds, Verdict.IMPLAUSIBLE, reason="more than any number can say")
    if capacity is not None and growth > capacity:
        reason = "more than its link can carry"
        return Rate(now.at_ms, seconds, Verdict.IMPLAUSIBLE, reason=reason, claimed=per_second)

    if width == 32 and capacity is not None and capacity >= 2.0**width:
        reason = "at its link's speed it may have been full more than once: at least this"
        return Rate(now.at_ms, seconds, Verdict.GAP, per_second, reason)
    if seconds * 1000 > GAP_INTERVALS * interval_ms > 0:
        reason = "polls are missing: the average since the last one"
        return Rate(now.at_ms, seconds, Verdict.GAP, per_second, reason)
    reason = "the counter was full and started over" if verdict is Verdict.WRAP else ""
    return Rate(now.at_ms, seconds, verdict, per_second, reason)


def _capacity(before: Point, now: Point, seconds: float) -> float | None:
    """Return what the link can have carried between two samples, or None for an unknown speed."""
    max_per_s = max(before.max_per_s or 0.0, now.max_per_s or 0.0)
    if not max_per_s:
        return None
    return max_per_s * SPEED_MARGIN * (seconds + REFRESH_S)
