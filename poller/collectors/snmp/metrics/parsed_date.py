"""The fields of a date while `text_dates` reads them from a text, and the instant they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

from poller.collectors.snmp.metrics.octet_dates import day_number


class NoDate(ValueError):
    """The text does not fit the pattern, or its fields contradict."""


@dataclass(slots=True)
class ParsedDate:
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
        """Read a number of at most this many digits.

        Raises NoDate when it is out of range.
        """
        pattern = re.compile(rf"[0-9]{{1,{digits}}}")
        number = int(self.match(pattern)[0])
        if not minimum <= number <= maximum:
            raise NoDate

        return number

    def literal(self, text: str) -> None:
        """Read exactly this text. Raises NoDate."""
        if not self.skip(text):
            raise NoDate

    def skip(self, text: str) -> bool:
        """Read this text if it is next; return whether it is."""
        if not self.text.startswith(text, self.at):
            return False

        self.at += len(text)
        return True

    def one_of(self, names: tuple[str, ...]) -> int:
        """Read one of the names, in any case; return its number, from 1.

        Raises NoDate.
        """
        rest = self.text[self.at :].lower()
        for number, name in enumerate(names, 1):
            if rest.startswith(name):
                self.at += len(name)
                return number

        raise NoDate

    def match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Read a text that matches a pattern.

        Raises NoDate.
        """
        match = pattern.match(self.text, self.at)
        if not match:
            raise NoDate

        self.at = match.end()
        return match

    def unix(self) -> float:
        """Return the Unix seconds of the fields.

        Raises NoDate for fields that contradict.
        """
        hour = self.hour
        if self.afternoon:
            hour += 12

        seconds = hour * 3600 + self.minute * 60 + self.second
        seconds += self._days() * 86400
        return float(seconds - self.offset_s)

    def _days(self) -> int:
        """Return the days since 1970, by the most exact fields that were read."""
        year = self.year
        if self.century >= 0:
            year = self.century * 100 + year % 100

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
        """Return the days since 1970 of a weekday in a numbered week."""
        if (self.week_begins == 4) != self.iso_year:
            raise NoDate

        week = self.week
        if self.week_begins > 0 and self.weekday == 1:
            week += 1  # Sunday is the last day of a week that begins on Monday

        base = day_number(year, 1, -self.week_begins)
        return base + week * 7 - (base + 4) % 7 + self.weekday - 1
