"""Dates that devices send as text, parsed by a pattern such as `%b %d %Y` (`ParseDateAndTime`).

Python's strptime differs: snmp_exporter accepts short numbers, any case, years before 1 and the
31st of February, and has no locale.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from poller.collectors.snmp.metrics.octet_dates import day_number

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_SHORT_MONTHS = tuple(name[:3] for name in _MONTHS)
_SHORT_DAYS = tuple(name[:3] for name in _DAYS)
#: Directives that abbreviate a pattern.
_ABBREVIATIONS = {
    "c": "%a %b %e %H:%M:%S %Y",
    "+": "%a %b %e %H:%M:%S %Z %Y",
    "v": "%e-%b-%Y",
    "r": "%I:%M:%S %p",
    "F": "%Y-%m-%d",
    "D": "%m/%d/%y",
    "x": "%m/%d/%y",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "R": "%H:%M",
}
_TOKEN = re.compile(r"%(:{0,3}z|.?)|[^%]", re.DOTALL)
_ZONE_NAME = re.compile(r"[A-Z]{3}|[A-Z]{3}T|WITA|[A-Z]{4}T")
#: Zone offsets, by the number of colons in the directive.
_ZONES = {
    0: re.compile(r"([+-])([01][0-9]|2[0-3])(?::([0-5][0-9])(?::([0-5][0-9]))?|([0-5][0-9]))?"),
    1: re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])()()"),
    2: re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])()"),
    3: re.compile(r"([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9])(?::([0-5][0-9]))?)?()"),
}


class NoDate(ValueError):
    """The text does not fit the pattern."""


@dataclass(slots=True)
class _Date:
    """The fields read from a text so far; `at` is the position of the next character."""

    text: str
    at: int = 0
    year: int = 1900
    century: int = -1
    month: int = 1
    day: int = 0
    day_of_year: int = 0
    week: int = 0
    #: 0 Sunday, 1 Monday, 4 ISO, -1 no week was read.
    week_begins: int = -1
    #: 1 Sunday to 7 Saturday, 0 unknown.
    weekday: int = 0
    iso_year: bool = False
    hour: int = 0
    minute: int = 0
    second: int = 0
    afternoon: bool = False
    offset_s: int = 0

    def number(self, digits: int, minimum: int, maximum: int) -> int:
        """Read a number of at most this many digits. Raises NoDate when it is out of range."""
        match = re.compile(rf"[0-9]{{1,{digits}}}").match(self.text, self.at)
        if not match or not minimum <= int(match[0]) <= maximum:
            raise NoDate
        self.at = match.end()
        return int(match[0])

    def literal(self, text: str) -> None:
        if not self.skip(text):
            raise NoDate

    def skip(self, text: str) -> bool:
        """Read this text if it is next; return whether it is."""
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def one_of(self, names: tuple[str, ...]) -> int:
        """Read one of the names, in any case; return its number, from 1."""
        rest = self.text[self.at :].lower()
        for number, name in enumerate(names, 1):
            if rest.startswith(name):
                self.at += len(name)
                return number
        raise NoDate

    def unix(self) -> float:
        hour = self.hour + 12 * self.afternoon
        seconds = hour * 3600 + self.minute * 60 + self.second - self.offset_s
        return float(self._days() * 86400 + seconds)

    def _days(self) -> int:
        year = self.year if self.century < 0 else self.century * 100 + self.year % 100
        if self.day:
            return day_number(year, self.month, self.day)
        if self.day_of_year:
            if self.iso_year:
                raise NoDate
            return day_number(year, 1, self.day_of_year)
        if self.week_begins >= 0:
            return self._day_of_week(year)
        return day_number(year, self.month, 1)

    def _day_of_week(self, year: int) -> int:
        if (self.week_begins == 4) != self.iso_year:
            raise NoDate
        week = self.week
        if self.week_begins > 0 and self.weekday == 1:
            week += 1  # Sunday is the last day of a week that begins on Monday

        base = day_number(year, 1, -self.week_begins)
        return base + week * 7 - (base + 4) % 7 + self.weekday - 1


def parse(text: str, pattern: str) -> float | None:
    """Return the Unix seconds of a text; None when the text does not fit the pattern."""
    date = _Date(text)
    try:
        _read(pattern, date)
        return date.unix() if date.at == len(text) else None
    except NoDate:
        return None


def unknown_directive(pattern: str) -> str:
    """Return the first directive without a meaning, as it is written; empty when there is none."""
    for token in _TOKEN.finditer(pattern):
        directive = token[1]
        if directive is None or directive.endswith("z"):
            continue
        if directive not in _READERS and directive not in _ABBREVIATIONS:
            return token[0]
    return ""


def _read(pattern: str, date: _Date) -> None:
    for token in _TOKEN.finditer(pattern):
        directive = token[1]
        if directive is None:
            date.literal(token[0])
        elif directive in _ABBREVIATIONS:
            _read(_ABBREVIATIONS[directive], date)
        elif directive.endswith("z"):
            _zone_offset(date, directive.count(":"))
        elif directive in _READERS:
            _READERS[directive](date)
        else:
            raise NoDate


def _zone_offset(date: _Date, colons: int) -> None:
    if date.skip("Z"):
        date.offset_s = 0
        return
    match = _ZONES[colons].match(date.text, date.at)
    if not match:
        raise NoDate
    date.at = match.end()

    sign, hours, minutes, seconds, joined_minutes = match.groups()
    offset_s = int(hours) * 3600 + int(minutes or joined_minutes or 0) * 60 + int(seconds or 0)
    date.offset_s = -offset_s if sign == "-" else offset_s


def _zone_name(date: _Date) -> None:
    """Skip the name of a zone. Go resolves UTC and the local zone only; others count as UTC."""
    match = re.compile("[A-Z]*").match(date.text, date.at)
    if not match or not _ZONE_NAME.fullmatch(match[0]):
        raise NoDate
    date.at = match.end()


def _year(date: _Date) -> None:
    sign = -1 if date.skip("-") else 1
    date.year = sign * date.number(4, 0, 9999)


def _short_year(date: _Date) -> None:
    year = date.number(2, 0, 99)
    date.year = year + (2000 if year < 69 else 1900)


def _iso(read: Callable[[_Date], None]) -> Callable[[_Date], None]:
    def read_iso(date: _Date) -> None:
        date.iso_year = True
        read(date)

    return read_iso


def _week(begins: int, first_day: int, minimum: int) -> Callable[[_Date], None]:
    def read_week(date: _Date) -> None:
        date.week = date.number(2, minimum, 53)
        date.week_begins = begins
        date.weekday = date.weekday or first_day

    return read_week


def _weekday_from_0(date: _Date) -> None:
    date.weekday = date.number(1, 0, 6) + 1


def _iso_weekday(date: _Date) -> None:
    date.weekday = date.number(1, 1, 7) % 7 + 1


def _hour_of_12(date: _Date) -> None:
    date.hour = date.number(2, 1, 12) % 12


def _unix_seconds(date: _Date) -> None:
    """Read Unix seconds, which replace the date fields read before."""
    sign = -1 if date.skip("-") else 1
    days, rest_s = divmod(sign * date.number(19, 0, 2**63 - 1), 86400)

    date.day_of_year = 0
    date.week_begins = -1
    date.century = -1
    date.year, date.month, date.day = 1970, 1, days + 1
    if date.day == 0:  # 0 stands for a day that was not read
        date.year, date.month, date.day = 1969, 12, 31
    date.hour = rest_s // 3600
    date.minute = rest_s // 60 % 60
    date.second = rest_s % 60


def _fraction(date: _Date) -> None:
    date.number(6, 0, 999_999)  # dates are whole seconds


def _blank(date: _Date) -> None:
    match = re.compile(r"[ \t\n\v\f\r]+").match(date.text, date.at)
    if not match:
        raise NoDate
    date.at = match.end()


def _percent(date: _Date) -> None:
    date.literal("%")


def _number(field: str, digits: int, minimum: int, maximum: int) -> Callable[[_Date], None]:
    def read_number(date: _Date) -> None:
        setattr(date, field, date.number(digits, minimum, maximum))

    return read_number


def _name(field: str, names: tuple[str, ...]) -> Callable[[_Date], None]:
    def read_name(date: _Date) -> None:
        setattr(date, field, date.one_of(names))

    return read_name


def _am_pm(date: _Date) -> None:
    date.afternoon = date.one_of(("am", "pm")) == 2


def _padded(read: Callable[[_Date], None]) -> Callable[[_Date], None]:
    def read_padded(date: _Date) -> None:
        date.skip(" ")
        read(date)

    return read_padded


_READERS: dict[str, Callable[[_Date], None]] = {
    "Y": _year,
    "G": _iso(_year),
    "y": _short_year,
    "g": _iso(_short_year),
    "C": _number("century", 2, 0, 99),
    "m": _number("month", 2, 1, 12),
    "B": _name("month", _MONTHS),
    "b": _name("month", _SHORT_MONTHS),
    "h": _name("month", _SHORT_MONTHS),
    "A": _name("weekday", _DAYS),
    "a": _name("weekday", _SHORT_DAYS),
    "w": _weekday_from_0,
    "u": _iso_weekday,
    "V": _week(4, 2, 1),
    "U": _week(0, 1, 0),
    "W": _week(1, 2, 0),
    "d": _number("day", 2, 1, 31),
    "e": _padded(_number("day", 2, 1, 31)),
    "j": _number("day_of_year", 3, 1, 366),
    "H": _number("hour", 2, 0, 23),
    "k": _padded(_number("hour", 2, 0, 23)),
    "I": _hour_of_12,
    "l": _padded(_hour_of_12),
    "P": _am_pm,
    "p": _am_pm,
    "M": _number("minute", 2, 0, 59),
    "S": _number("second", 2, 0, 60),
    "s": _unix_seconds,
    "f": _fraction,
    "Z": _zone_name,
    "t": _blank,
    "n": _blank,
    "%": _percent,
}
