"""Dates that devices send as text, parsed by a pattern such as `%b %d %Y` (`ParseDateAndTime`).

Python's strptime differs: snmp_exporter accepts short numbers, any case, years before 1 and the
31st of February, and has no locale.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from poller.collectors.snmp.metrics.parsed_date import NoDate, ParsedDate

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
_BLANKS = re.compile(r"[ \t\n\v\f\r]+")
_CAPITALS = re.compile("[A-Z]*")
_ZONE_NAME = re.compile(r"[A-Z]{3}|[A-Z]{3}T|WITA|[A-Z]{4}T")
#: Zone offsets, by the number of colons in the directive.
_ZONES = {
    0: re.compile(r"([+-])([01][0-9]|2[0-3])(?::([0-5][0-9])(?::([0-5][0-9]))?|([0-5][0-9]))?"),
    1: re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])()()"),
    2: re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])()"),
    3: re.compile(r"([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9])(?::([0-5][0-9]))?)?()"),
}


def parse(text: str, pattern: str) -> float | None:
    """Return the Unix seconds of a text; None when the text does not fit the pattern."""
    date = ParsedDate(text)
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


def _read(pattern: str, date: ParsedDate) -> None:
    """Read a text by a pattern.

    Raises NoDate.
    """
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


def _zone_offset(date: ParsedDate, colons: int) -> None:
    """Read `Z`, or an offset such as `+02:30`."""
    if date.skip("Z"):
        date.offset_s = 0
        return

    sign, hours, minutes, seconds, joined_minutes = date.match(_ZONES[colons]).groups()
    offset_s = int(hours) * 3600
    offset_s += int(minutes or joined_minutes or 0) * 60
    offset_s += int(seconds or 0)
    date.offset_s = -offset_s if sign == "-" else offset_s


def _zone_name(date: ParsedDate) -> None:
    """Read the name of a zone. Go resolves UTC and the local zone only; others count as UTC."""
    name = date.match(_CAPITALS)[0]
    if not _ZONE_NAME.fullmatch(name):
        raise NoDate


def _year(date: ParsedDate) -> None:
    """Read a year of up to four digits, with a sign."""
    sign = -1 if date.skip("-") else 1
    date.year = sign * date.number(4, 0, 9999)


def _short_year(date: ParsedDate) -> None:
    """Read two digits: 69 is 1969, 68 is 2068."""
    year = date.number(2, 0, 99)
    date.year = year + (2000 if year < 69 else 1900)


def _iso_year(date: ParsedDate) -> None:
    """Read the year of an ISO week."""
    date.iso_year = True
    _year(date)


def _short_iso_year(date: ParsedDate) -> None:
    """Read the year of an ISO week, in two digits."""
    date.iso_year = True
    _short_year(date)


def _weekday_from_0(date: ParsedDate) -> None:
    """Read 0 for Sunday to 6 for Saturday."""
    date.weekday = date.number(1, 0, 6) + 1


def _iso_weekday(date: ParsedDate) -> None:
    """Read 1 for Monday to 7 for Sunday."""
    date.weekday = date.number(1, 1, 7) % 7 + 1


def _hour_of_12(date: ParsedDate) -> None:
    """Read 12 and 1 to 11; `_am_pm` adds the rest."""
    date.hour = date.number(2, 1, 12) % 12


def _am_pm(date: ParsedDate) -> None:
    """Read `am` or `pm`."""
    date.afternoon = date.one_of(("am", "pm")) == 2


def _unix_seconds(date: ParsedDate) -> None:
    """Read Unix seconds, which replace the date fields read before."""
    sign = -1 if date.skip("-") else 1
    seconds = sign * date.number(19, 0, 2**63 - 1)
    days, rest_s = divmod(seconds, 86400)

    date.day_of_year = 0
    date.week_begins = -1
    date.century = -1
    date.year, date.month, date.day = 1970, 1, days + 1
    if date.day == 0:  # 0 stands for a day that was not read
        date.year, date.month, date.day = 1969, 12, 31

    date.hour = rest_s // 3600
    date.minute = rest_s // 60 % 60
    date.second = rest_s % 60


def _fraction(date: ParsedDate) -> None:
    """Read a fraction, which is dropped: dates are whole seconds."""
    date.number(6, 0, 999_999)


def _blank(date: ParsedDate) -> None:
    """Read at least one blank."""
    date.match(_BLANKS)


def _percent(date: ParsedDate) -> None:
    """Read a percent sign."""
    date.literal("%")


@dataclass(frozen=True, slots=True)
class _Number:
    """A directive for a number in one field; `padded` allows a blank before it."""

    field: str
    digits: int
    minimum: int
    maximum: int
    padded: bool = False

    def __call__(self, date: ParsedDate) -> None:
        if self.padded:
            date.skip(" ")

        number = date.number(self.digits, self.minimum, self.maximum)
        setattr(date, self.field, number)


@dataclass(frozen=True, slots=True)
class _Name:
    """A directive for the name of a month or weekday."""

    field: str
    names: tuple[str, ...]

    def __call__(self, date: ParsedDate) -> None:
        setattr(date, self.field, date.one_of(self.names))


@dataclass(frozen=True, slots=True)
class _Week:
    """A directive for the number of a week; `begins` as in `ParsedDate.week_begins`."""

    begins: int
    first_day: int
    minimum: int

    def __call__(self, date: ParsedDate) -> None:
        date.week = date.number(2, self.minimum, 53)
        date.week_begins = self.begins
        date.weekday = date.weekday or self.first_day


def _padded_hour_of_12(date: ParsedDate) -> None:
    """Read `_hour_of_12` with a blank before a single digit."""
    date.skip(" ")
    _hour_of_12(date)


_READERS: dict[str, Callable[[ParsedDate], None]] = {
    "Y": _year,
    "G": _iso_year,
    "y": _short_year,
    "g": _short_iso_year,
    "C": _Number("century", 2, 0, 99),
    "m": _Number("month", 2, 1, 12),
    "B": _Name("month", _MONTHS),
    "b": _Name("month", _SHORT_MONTHS),
    "h": _Name("month", _SHORT_MONTHS),
    "A": _Name("weekday", _DAYS),
    "a": _Name("weekday", _SHORT_DAYS),
    "w": _weekday_from_0,
    "u": _iso_weekday,
    "V": _Week(4, 2, 1),
    "U": _Week(0, 1, 0),
    "W": _Week(1, 2, 0),
    "d": _Number("day", 2, 1, 31),
    "e": _Number("day", 2, 1, 31, padded=True),
    "j": _Number("day_of_year", 3, 1, 366),
    "H": _Number("hour", 2, 0, 23),
    "k": _Number("hour", 2, 0, 23, padded=True),
    "I": _hour_of_12,
    "l": _padded_hour_of_12,
    "P": _am_pm,
    "p": _am_pm,
    "M": _Number("minute", 2, 0, 59),
    "S": _Number("second", 2, 0, 60),
    "s": _unix_seconds,
    "f": _fraction,
    "Z": _zone_name,
    "t": _blank,
    "n": _blank,
    "%": _percent,
}
