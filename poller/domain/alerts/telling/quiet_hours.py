"""Quiet hours of a route: the spans of a week in which what is not urgent waits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from poller import errors

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_EVERY_DAY = frozenset(range(7))
_SPAN = re.compile(r"(?:(?P<days>[a-z,-]+) +)?(?P<start>\d\d:\d\d)-(?P<end>\d\d:\d\d)")
_DAY_MINUTES = 24 * 60
#: Spans that follow each other without a gap are followed for so many steps.
_MOST_STEPS = 20
_EXAMPLE = "22:00-07:00, or mon-fri 18:00-08:00, or sat,sun 00:00-24:00"


@dataclass(frozen=True, slots=True)
class QuietSpan:
    """A span of the wall clock that begins on some days of the week, in minutes of the day.

    An end that is not after the start is on the next day.
    """

    days: frozenset[int]
    start: int
    end: int

    def around(self, day: date, zone: ZoneInfo) -> tuple[datetime, datetime] | None:
        """The begin and end of the span that begins on this day; None if none does."""
        if day.weekday() not in self.days:
            return None
        end = self.end if self.end > self.start else self.end + _DAY_MINUTES
        return _instant(day, self.start, zone), _instant(day, end, zone)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """All quiet spans of a route, by the wall clock of one time zone."""

    spans: tuple[QuietSpan, ...] = ()
    time_zone: str = "UTC"

    def end_ms(self, now_ms: int) -> int:
        """The instant at which the quiet hours around `now_ms` end; 0 outside of quiet hours."""
        if not self.spans:
            return 0
        zone = ZoneInfo(self.time_zone)
        at = datetime.fromtimestamp(now_ms / 1000, UTC)
        quiet_until: datetime | None = None
        for _ in range(_MOST_STEPS):
            end = self._end_of_span(quiet_until or at, zone)
            if end is None:
                break
            quiet_until = end
        return round(quiet_until.timestamp() * 1000) if quiet_until else 0

    def _end_of_span(self, at: datetime, zone: ZoneInfo) -> datetime | None:
        """The latest end of the spans that `at` is in."""
        today = at.astimezone(zone).date()
        ends = []
        for span in self.spans:
            for day in (today - timedelta(days=1), today):
                found = span.around(day, zone)
                if found and found[0] <= at < found[1]:
                    ends.append(found[1])
        return max(ends, default=None)


NO_QUIET_HOURS = QuietHours()


def parse(texts: Sequence[str], time_zone: str) -> QuietHours:
    """Return the quiet hours of their texts. Raises InvalidInput, which names the wrong part."""
    try:
        ZoneInfo(time_zone)
    except (KeyError, ValueError, OSError):
        raise errors.InvalidInput(
            f'time_zone: "{time_zone}" is no time zone', hint="for example Europe/Amsterdam"
        ) from None
    return QuietHours(tuple(_span(text) for text in texts), time_zone)


def _span(text: str) -> QuietSpan:
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None:
        raise errors.InvalidInput(
            f'quiet_hours: "{text}" is no span of time', hint=f"write {_EXAMPLE}"
        )
    start, end = _minute(match["start"], text), _minute(match["end"], text)
    if start in (end, _DAY_MINUTES):
        raise errors.InvalidInput(
            f'quiet_hours: "{text}" begins where it ends', hint="a whole day is 00:00-24:00"
        )
    return QuietSpan(_days(match["days"], text), start, end)


def _minute(clock: str, text: str) -> int:
    hour, minute = int(clock[:2]), int(clock[3:])
    if minute > 59 or hour * 60 + minute > _DAY_MINUTES:
        raise errors.InvalidInput(
            f'quiet_hours: "{text}" has no time of day: {clock}', hint="00:00 to 24:00"
        )
    return hour * 60 + minute


def _days(words: str | None, text: str) -> frozenset[int]:
    if words is None:
        return _EVERY_DAY
    days: set[int] = set()
    for word in words.split(","):
        first, dash, last = word.partition("-")
        for name in (first, last or first):
            if name not in DAYS:
                hint = f"days are {', '.join(DAYS)}, as in {_EXAMPLE}"
                raise errors.InvalidInput(f'quiet_hours: "{text}" has no day: {name}', hint=hint)
        begin, end = DAYS.index(first), DAYS.index(last if dash else first)
        length = (end - begin) % 7
        days.update((begin + step) % 7 for step in range(length + 1))
    return frozenset(days)


def _instant(day: date, minute: int, zone: ZoneInfo) -> datetime:
    wall = datetime.combine(day, time(), zone) + timedelta(minutes=minute)
    return wall.astimezone(UTC)
