"""Dates as texts: a pattern turns them into Unix seconds as snmp_exporter does."""

from __future__ import annotations

import calendar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.collectors.snmp.metrics import octet_dates, text_dates


def unix(*fields: int) -> float:
    return float(calendar.timegm((*fields, 0, 0, 0)[:6]))


@pytest.mark.parametrize(
    ("text", "pattern", "seconds"),
    [
        ("Apr 01 2025", "%b %d %Y", unix(2025, 4, 1)),
        ("APR 1 2025", "%b %d %Y", unix(2025, 4, 1)),
        ("april 31 2025", "%B %d %Y", unix(2025, 5, 1)),
        ("2025", "%Y", unix(2025, 1, 1)),
        ("5/7/24", "%d/%m/%y", unix(2024, 7, 5)),
        ("69", "%y", unix(1969, 1, 1)),
        ("1999", "%C%y", unix(1999, 1, 1)),
        ("19", "%C", unix(1900, 1, 1)),
        ("-001-06-15", "%Y-%m-%d", float(octet_dates.day_number(-1, 6, 15) * 86400)),
        ("Tue Mar  4 05:06:07 2025", "%c", unix(2025, 3, 4, 5, 6, 7)),
        ("Tue Mar  4 05:06:07 2025", "%a %b %e %H:%M:%S %Y", unix(2025, 3, 4, 5, 6, 7)),
        ("2025-03-04T05:06:07+02:30", "%FT%T%z", unix(2025, 3, 4, 2, 36, 7)),
        ("2025-03-04T05:06:07-0230", "%FT%T%z", unix(2025, 3, 4, 7, 36, 7)),
        ("2025-03-04 05 +02", "%F %H %z", unix(2025, 3, 4, 3)),
        ("2025-03-04 Z", "%F %z", unix(2025, 3, 4)),
        ("2025-03-04 +0230", "%F %:z", None),
        ("2025-03-04 +02:30", "%F %:z", unix(2025, 3, 3, 21, 30)),
        ("2025-03-04 +02:30:30", "%F %::z", unix(2025, 3, 3, 21, 29, 30)),
        ("2025-03-04 CEST", "%F %Z", unix(2025, 3, 4)),
        ("2025-03-04 ABCD", "%F %Z", None),
        ("12:30 am 2025", "%I:%M %p %Y", unix(2025, 1, 1, 0, 30)),
        ("1:30PM 2025", "%l:%M%P %Y", unix(2025, 1, 1, 13, 30)),
        ("2024 366", "%Y %j", unix(2024, 12, 31)),
        ("2024 W10 1", "%G W%V %u", unix(2024, 3, 4)),
        ("2024 W10 7", "%G W%V %u", unix(2024, 3, 10)),
        ("2024 10", "%G %j", None),
        ("2024 10 3", "%Y %U %w", unix(2024, 3, 13)),
        ("2024 10 0", "%Y %W %w", unix(2024, 3, 10)),
        ("2024 W10", "%Y W%V", None),
        ("1700000000", "%s", 1700000000),
        ("-1", "%s", -1),
        ("-86400", "%s", -86400),
        ("12.345678 2025", "%S.%f %Y", unix(2025, 1, 1, 0, 0, 12)),
        ("a \t2025", "a%t%Y", unix(2025, 1, 1)),
        ("100%2025", "100%%%Y", unix(2025, 1, 1)),
        ("", "", unix(1900, 1, 1)),
        ("2025 ", "%Y", None),
        ("2025-13-01", "%F", None),
        ("2025-00-01", "%F", None),
        ("never", "%F", None),
        ("", "%F", None),
        ("25", "%H", None),
        ("2025", "%Q", None),
        ("2025%", "%Y%", None),
    ],
)
def test_dates_by_pattern(text: str, pattern: str, seconds: float | None) -> None:
    """Short numbers and any case are valid, days carry over, and the whole text must fit."""
    assert text_dates.parse(text, pattern) == seconds


@pytest.mark.parametrize(
    ("pattern", "directive"),
    [("%Y-%m", ""), ("%:z %::z", ""), ("%Y %Q", "%Q"), ("x%", "%"), ("%c", "")],
)
def test_an_unknown_directive_is_reported(pattern: str, directive: str) -> None:
    """A module file with an unknown directive is refused; it would give no samples."""
    assert text_dates.unknown_directive(pattern) == directive


@given(st.text(max_size=20), st.text(alphabet="%YmdHMSzZbaj:cs Q1", max_size=12))
def test_any_text_and_pattern_is_a_number_or_nothing(text: str, pattern: str) -> None:
    """No text of a device raises an exception."""
    assert text_dates.parse(text, pattern) is None or isinstance(
        text_dates.parse(text, pattern), float
    )
