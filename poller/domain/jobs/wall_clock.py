"""The instants of a cron expression in a time zone, also on days when the clock is changed.

`cronsim` lists times of the wall clock; this module turns each into instants, forwards and
backwards by the same rules (decision 39).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_FIELDS = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)


def fault(expression: str, timezone: str) -> str:
    """The fault of a cron expression or its time zone; "" if they have none."""
    if len(expression.split()) != _FIELDS:
        return f'"{expression}" does not have the five fields minute, hour, day, month, weekday'
    try:
        ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        return f'"{timezone}" is no time zone, such as Europe/Amsterdam'
    try:
        next(CronSim(expression, _EPOCH.replace(tzinfo=None)))
    except CronSimError as error:
        return f'"{expression}": {error}; the fields are minute, hour, day, month, weekday'
    except StopIteration:
        return f'"{expression}" names no day of any year'
    return ""


def instants(expression: str, timezone: str, after_ms: int) -> Iterator[int]:
    """The instants after `after_ms` in UTC milliseconds, each once, oldest first."""
    zone = ZoneInfo(timezone)
    start = (_EPOCH + timedelta(milliseconds=after_ms)).astimezone(zone)
    walls = CronSim(expression, start.replace(tzinfo=None, fold=0) - _repeated(start))
    in_every_hour = len(walls.hours) == 24

    # The two instants of a repeated wall time have those of later wall times between them. No
    # later wall time has an instant before the first one of this wall time.
    pending: list[int] = []
    last_ms = after_ms
    for wall in walls:
        found = _instants_of(wall, zone, in_every_hour)
        for instant_ms in found:
            heapq.heappush(pending, instant_ms)
        while found and pending and pending[0] <= found[0]:
            instant_ms = heapq.heappop(pending)
            if instant_ms > last_ms:
                last_ms = instant_ms
                yield instant_ms


def latest_ms(expression: str, timezone: str, now_ms: int) -> int:
    """The newest instant that is not after `now_ms`, in UTC milliseconds."""
    zone = ZoneInfo(timezone)
    start = (_EPOCH + timedelta(milliseconds=now_ms)).astimezone(zone)
    # CronSim starts before its argument.
    first = start.replace(tzinfo=None, fold=0, microsecond=0) + timedelta(seconds=1)
    walls = CronSim(expression, first + _repeated(start), reverse=True)
    in_every_hour = len(walls.hours) == 24

    best_ms = 0
    for wall in walls:
        found = _instants_of(wall, zone, in_every_hour)
        passed = [instant_ms for instant_ms in found if instant_ms <= now_ms]
        if passed:
            best_ms = max(best_ms, passed[-1])
        if passed and passed == found:  # no earlier wall time has a later instant
            return best_ms
    raise ValueError(f'"{expression}" names no day of the past fifty years')


def _instants_of(wall: datetime, zone: ZoneInfo, in_every_hour: bool) -> list[int]:
    """The instants of a wall time: two if it is repeated and counts twice, none if left out."""
    first_ms = _ms(wall.replace(tzinfo=zone, fold=0))
    second_ms = _ms(wall.replace(tzinfo=zone, fold=1))
    if first_ms < second_ms and in_every_hour:
        return [first_ms, second_ms]
    if first_ms <= second_ms:
        return [first_ms]
    return [] if in_every_hour else [_end_of_gap_ms(wall, zone)]


def _repeated(instant: datetime) -> timedelta:
    """How much of the wall clock is repeated around this instant; mostly nothing."""
    before, after = _offsets(instant)
    return max(before - after, timedelta())


def _end_of_gap_ms(wall: datetime, zone: ZoneInfo) -> int:
    """The instant at which the clock was put forward past this wall time."""
    while _is_skipped(wall, zone):
        wall += _MINUTE
    return _ms(wall.replace(tzinfo=zone))


def _is_skipped(wall: datetime, zone: ZoneInfo) -> bool:
    before, after = _offsets(wall.replace(tzinfo=zone))
    return before < after


def _offsets(instant: datetime) -> tuple[timedelta, timedelta]:
    """The offsets of a wall time by the rule before and after a change of the clock."""
    before, after = instant.replace(fold=0).utcoffset(), instant.replace(fold=1).utcoffset()
    assert before is not None
    assert after is not None
    return before, after


def _ms(instant: datetime) -> int:
    return int((instant - _EPOCH) / timedelta(milliseconds=1))
