"""Dates that devices send as text, read by a pattern such as `%b %d %Y`: snmp_exporter's `ParseDateAndTime`.

Not Python's strptime: this one takes short numbers, any case, years before 1 and the 31st of February as snmp_exporter
does, and knows no locale.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from poller.collectors.snmp.metrics.octet_dates import day_number

_SUMMER = ("april", "may", "june", "july", "august", "september")
_MONTHS = ("january", "february", "march", *_SUMMER, "october", "november", "december")
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
#: What a letter stands for that is short for several.
_LONGER = {
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
_ZONES = {  # by the number of colons in the pattern
    0: re.compile(r"([+-])([01][0-9]|2[0-3])(?::([0-5][0-9])(?::([0-5][0-9]))?|([0-5][0-9]))?"),
    1: re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])()()"),
    2: re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])()"),
    3: re.compile(r"([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9])(?::([0-5][0-9]))?)?()"),
}


class NoDate(ValueError):
    """The text does not fit the pattern."""


@dataclass(slots=True)
class _Date:
    """What has been read of a text so far."""

    text: str
    at: int = 0
    year: int = 1900
    century: int = -1
    month: int = 1
    day: int = 0
    day_of_year: int = 0
    week: int = 0
    week_begins: int = -1  # 0 Sunday, 1 Monday, 4 ISO
    weekday: int = 0  # 1 Sunday ... 7 Saturday, 0 unknown
    iso_year: bool = False
    hour: int = 0
    minute: int = 0
    second: int = 0
    afternoon: bool = False
    offset_s: int = 0

    def digits(self, most: int, least: int, limit: int) -> int:
        found = re.compile(rf"[0-9]{{1,{most}}}").match(self.text, self.at)
        if not found or not least <= int(found[0]) <= limit:
            raise NoDate
        self.at = found.end()
        return int(found[0])

    def literal(self, text: str) -> None:
        if not self.text.startswith(text, self.at):
            raise NoDate
        self.at += len(text)

    def skip(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def one_of(self, names: tuple[str, ...]) -> int:
        """The number of a name, from 1."""
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
        return self._day_of_week(year) if self.week_begins >= 0 else day_number(year, self.month, 1)

    def _day_of_week(self, year: int) -> int:
        if (self.week_begins == 4) != self.iso_year:
            raise NoDate
        week = self.week + (self.week_begins > 0 and self.weekday == 1)  # Sunday is their last day
        base = day_number(year, 1, -self.week_begins)
        return base + week * 7 - (base + 4) % 7 + self.weekday - 1


def parse(text: str, pattern: str) -> float | None:
    """Unix seconds; None when the text does not fit the pattern."""
    date = _Date(text)
    try:
        _follow(pattern, date)
        return date.unix() if date.at == len(text) else None
    except NoDate:
        return None


def unknown(pattern: str) -> str:
    """The first directive nobody knows, as it is written; empty when all are known."""
    for token in _TOKEN.finditer(pattern):
        letter = token[1]
        if (
            letter is not None
            and letter[-1:] != "z"
            and letter not in _READERS
            and letter not in _LONGER
        ):
            return token[0]
    return ""


def _follow(pattern: str, date: _Date) -> None:
    for token in _TOKEN.finditer(pattern):
        letter = token[1]
        if letter is None:
            date.literal(token[0])
        elif letter in _LONGER:
            _follow(_LONGER[letter], date)
        elif letter.endswith("z"):
            _offset(date, letter.count(":"))
        elif letter in _READERS:
            _READERS[letter](date)
        else:
            raise NoDate


def _offset(date: _Date, colons: int) -> None:
    if date.skip("Z"):
        date.offset_s = 0
        return
    found = _ZONES[colons].match(date.text, date.at)
    if not found:
        raise NoDate
    sign, hours, minutes, seconds, joined = found.groups()
    date.at = found.end()
    offset_s = int(hours) * 3600 + int(minutes or joined or 0) * 60 + int(seconds or 0)
    date.offset_s = -offset_s if sign == "-" else offset_s


def _zone_name(date: _Date) -> None:
    """Go knows UTC and the machine's own zone by name, and takes every other one for UTC as well."""
    found = re.compile("[A-Z]*").match(date.text, date.at)
    if not found or not _ZONE_NAME.fullmatch(found[0]):
        raise NoDate
    date.at = found.end()


def _year(date: _Date) -> None:
    sign = -1 if date.skip("-") else 1
    date.year = sign * date.digits(4, 0, 9999)


def _short_year(date: _Date) -> None:
    year = date.digits(2, 0, 99)
    date.year = year + (2000 if year < 69 else 1900)


def _iso(read: Callable[[_Date], None]) -> Callable[[_Date], None]:
    def read_iso(date: _Date) -> None:
        date.iso_year = True
        read(date)

    return read_iso


def _week(begins: int, first_day: int, least: int) -> Callable[[_Date], None]:
    def read_week(date: _Date) -> None:
        date.week = date.digits(2, least, 53)
        date.week_begins = begins
        date.weekday = date.weekday or first_day

    return read_week


def _hour_of_12(date: _Date) -> None:
    date.hour = date.digits(2, 1, 12) % 12


def _unix_seconds(date: _Date) -> None:
    sign = -1 if date.skip("-") else 1
    date.day_of_year, date.week_begins, date.century = 0, -1, -1
    seconds = sign * date.digits(19, 0, 2**63 - 1)
    days, rest = divmod(seconds, 86400)
    date.year, date.month, date.day = (
        (1970, 1, days + 1) if days != -1 else (1969, 12, 31)
    )  # day 0 means none
    date.hour, date.minute, date.second = rest // 3600, rest // 60 % 60, rest % 60


def _fraction(date: _Date) -> None:
    date.digits(6, 0, 999_999)  # whole seconds are all that is asked for


def _blank(date: _Date) -> None:
    found = re.compile(r"[ \t\n\v\f\r]+").match(date.text, date.at)
    if not found:
        raise NoDate
    date.at = found.end()


def _number(
    field: str, most: int, least: int, limit: int, pad: bool = False
) -> Callable[[_Date], None]:
    def read_number(date: _Date) -> None:
        if pad:
            date.skip(" ")
        setattr(date, field, date.digits(most, least, limit))

    return read_number


def _named(field: str, names: tuple[str, ...]) -> Callable[[_Date], None]:
    return lambda date: setattr(date, field, date.one_of(names))


def _am_pm(date: _Date) -> None:
    date.afternoon = date.one_of(("am", "pm")) == 2


def _padded(read: Callable[[_Date], None]) -> Callable[[_Date], None]:
    def read_padded(date: _Date) -> None:
        date.skip(" ")
        read(date)

    return read_padded


_SHORT_MONTHS, _SHORT_DAYS = tuple(name[:3] for name in _MONTHS), tuple(name[:3] for name in _DAYS)
_READERS: dict[str, Callable[[_Date], None]] = {
    "Y": _year,
    "G": _iso(_year),
    "y": _short_year,
    "g": _iso(_short_year),
    "C": _number("century", 2, 0, 99),
    "m": _number("month", 2, 1, 12),
    "B": _named("month", _MONTHS),
    "b": _named("month", _SHORT_MONTHS),
    "h": _named("month", _SHORT_MONTHS),
    "A": _named("weekday", _DAYS),
    "a": _named("weekday", _SHORT_DAYS),
    "w": lambda date: setattr(date, "weekday", date.digits(1, 0, 6) + 1),
    "u": lambda date: setattr(date, "weekday", date.digits(1, 1, 7) % 7 + 1),
    "V": _week(4, 2, 1),
    "U": _week(0, 1, 0),
    "W": _week(1, 2, 0),
    "d": _number("day", 2, 1, 31),
    "e": _number("day", 2, 1, 31, pad=True),
    "j": _number("day_of_year", 3, 1, 366),
    "H": _number("hour", 2, 0, 23),
    "k": _number("hour", 2, 0, 23, pad=True),
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
    "%": lambda date: date.literal("%"),
}
