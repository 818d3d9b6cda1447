"""Two samples of a counter to a rate, with a verdict: is it true, corrected, averaged, or not to be had?

A counter only grows, until it starts over: because it is full (wrap) or because its owner restarted (reset).
The difference is worth millions of octets, so nothing is guessed here: where it cannot be told, there is no rate.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: sysUpTime counts hundredths of a second in 32 bits: it starts over every 497 days.
UPTIME_RANGE = 2.0**32
#: How far sysUpTime may stray from our clock: a poll takes its time, and clocks differ by some part of the way.
UPTIME_SLACK_S = 10.0
UPTIME_DRIFT = 0.02
#: So far ahead it is no slow poll any more, but somebody else's.
ANOTHER_AGENT_S = 600.0
#: Agents refresh their counters every so many seconds, so that a poll may see that much more than its share.
REFRESH_S = 10.0
SPEED_MARGIN = 1.1
#: More than so many intervals between two samples are a gap: one lost poll is none.
GAP_INTERVALS = 2.5
#: Without a speed to hold it against, a wrap is believed if the counter was about to be full.
ALMOST_FULL = 1 / 8


class Verdict(enum.StrEnum):
    """What a rate is worth."""

    OK = "ok"  # the counter grew
    WRAP = "wrap"  # it was full and started over: corrected, and as good as ok
    GAP = "gap"  # the samples are too far apart to say more than the average
    RESET = "reset"  # it was set back: no rate
    IMPLAUSIBLE = "implausible"  # it says more than its link can carry: no rate
    FIRST = "first"  # there is nothing before it: no rate


class Point(NamedTuple):
    """One sample, and what the same poll said about its owner; None is what it did not say."""

    at_ms: int
    value: float
    uptime_cs: float | None = None
    discontinuity_cs: float | None = None  # sysUpTime when the counter was last set back
    most_per_s: float | None = None  # what its link can carry


class Rate(NamedTuple):
    """Growth per second from the sample before to the one at `at_ms`; None where none is to be had."""

    at_ms: int
    seconds: float  # since the sample before; 0 for the first
    verdict: Verdict
    per_second: float | None = None
    reason: str = ""  # of any verdict but ok
    claimed: float | None = None  # of an implausible one: what the device says


def rates(points: Iterable[Point], width: int, interval_ms: int) -> Iterator[Rate]:
    """A rate for every point, oldest first. A value that is no number is skipped, as if it was not polled."""
    before: Point | None = None
    higher: Point | None = None  # the sample before a fall that nothing explains
    for now in points:
        if not math.isfinite(now.value):
            continue
        found = rate(before, now, width, interval_ms)
        if higher and before and _is_back(higher, before, now):
            found = _over_a_lie(rate(higher, now, width, interval_ms))
        higher = (
            before
            if found.verdict is Verdict.RESET and before and now.value < before.value
            else None
        )
        yield found
        before = now


def _is_back(higher: Point, low: Point, now: Point) -> bool:
    """Some agents answer 0 once in a while: then the sample in between was wrong, not the counter.

    It must be about where it was, and not just higher: a small counter is soon above its old self.
    """
    grown, fell = now.value - higher.value, higher.value - low.value
    return 0 <= grown <= fell and not set_back(higher, now, (now.at_ms - higher.at_ms) / 1000)


def _over_a_lie(found: Rate) -> Rate:
    if found.per_second is None:
        return found
    return found._replace(
        verdict=Verdict.GAP,
        reason="the sample before it was wrong: the average since the one before",
    )


def rate(before: Point | None, now: Point, width: int, interval_ms: int) -> Rate:
    """Of two samples; `width` is 32, 64 or 0 (unknown), `interval_ms` the time there should be between them."""
    if before is None:
        return Rate(now.at_ms, 0.0, Verdict.FIRST, reason="there is no sample before it")
    seconds = (now.at_ms - before.at_ms) / 1000
    if seconds <= 0:
        return Rate(
            now.at_ms,
            seconds,
            Verdict.IMPLAUSIBLE,
            reason="no time has passed since the sample before",
        )
    if reason := set_back(before, now, seconds):
        return Rate(now.at_ms, seconds, Verdict.RESET, reason=reason)
    growth, verdict = now.value - before.value, Verdict.OK
    if growth < 0:
        growth, verdict = _wrapped(growth, width), Verdict.WRAP
        if reason := _no_wrap(growth, before, now, width, seconds):
            return Rate(now.at_ms, seconds, Verdict.RESET, reason=reason)
    return _judged(before, now, growth, verdict, width, interval_ms)


def set_back(before: Point, now: Point, seconds: float) -> str:
    """Why the counter must have been set back between two polls, by what the device says besides; or nothing."""
    if before.discontinuity_cs != now.discontinuity_cs and None not in (
        before.discontinuity_cs,
        now.discontinuity_cs,
    ):
        return "the device says that its counters were set back"
    if before.uptime_cs is None or now.uptime_cs is None:
        return ""
    return _restart(before.uptime_cs, now.uptime_cs, 100 * seconds)


def _restart(before_cs: float, now_cs: float, elapsed_cs: float) -> str:
    """Why the one sysUpTime is not what the other became; or nothing, also where it starts over after 497 days.

    A clock that is slow or stands still proves nothing: whoever is up for longer than since the last poll
    has not restarted since.
    """
    slack = 100 * UPTIME_SLACK_S + UPTIME_DRIFT * elapsed_cs
    ahead = now_cs - (before_cs + elapsed_cs) % UPTIME_RANGE
    if min(abs(ahead), UPTIME_RANGE - abs(ahead)) <= slack:
        # Soon after a restart, one more at once would look the same.
        return "" if before_cs > slack or now_cs >= elapsed_cs else "the device restarted"
    if now_cs <= elapsed_cs + slack:
        return "the device restarted"
    if now_cs < before_cs:
        return "sysUpTime went back"
    return "sysUpTime jumped ahead: another agent answers" if ahead > 100 * ANOTHER_AGENT_S else ""


def _wrapped(growth: float, width: int) -> float:
    return growth + 2.0**width if width else growth


def _no_wrap(growth: float, before: Point, now: Point, width: int, seconds: float) -> str:
    """Why a counter that went down was set back and not full, or nothing."""
    if not width or growth < 0:
        return "the counter went down, and it is not known how far it counts"
    most = _most(before, now, seconds)
    if most is not None and most >= 2.0**width:
        return "the counter went down, and its link is too fast to tell why"
    if most is not None:
        return (
            ""
            if growth <= most
            else "the counter went down, and its link is too slow to have filled it"
        )
    if width == 32 and before.uptime_cs is not None and now.uptime_cs is not None:
        return (
            ""
            if growth <= ALMOST_FULL * 2.0**width
            else "the counter went down long before it was full"
        )
    return "the counter went down"


def _judged(
    before: Point, now: Point, growth: float, verdict: Verdict, width: int, interval_ms: int
) -> Rate:
    """A growth that is not negative: can it be, and is it all there is to say?"""
    seconds = (now.at_ms - before.at_ms) / 1000
    per_second, most = growth / seconds, _most(before, now, seconds)
    if not math.isfinite(per_second):
        return Rate(now.at_ms, seconds, Verdict.IMPLAUSIBLE, reason="more than any number can say")
    if most is not None and growth > most:
        reason = "more than its link can carry"
        return Rate(now.at_ms, seconds, Verdict.IMPLAUSIBLE, reason=reason, claimed=per_second)
    if width == 32 and most is not None and most >= 2.0**width:
        reason = "at its link's speed it may have been full more than once: at least this"
        return Rate(now.at_ms, seconds, Verdict.GAP, per_second, reason)
    if seconds * 1000 > GAP_INTERVALS * interval_ms > 0:
        return Rate(
            now.at_ms,
            seconds,
            Verdict.GAP,
            per_second,
            "polls are missing: the average since the last one",
        )
    reason = "the counter was full and started over" if verdict is Verdict.WRAP else ""
    return Rate(now.at_ms, seconds, verdict, per_second, reason)


def _most(before: Point, now: Point, seconds: float) -> float | None:
    """What its link can have carried since, if its speed is known."""
    most = max(before.most_per_s or 0.0, now.most_per_s or 0.0)
    return most * SPEED_MARGIN * (seconds + REFRESH_S) if most else None
