"""Dates as octets: DateAndTime and NTP time stamps as Unix seconds, as in snmp_exporter."""

from __future__ import annotations

import calendar
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.collectors.snmp.metrics import octet_dates


def unix(*fields: int) -> float:
    return float(calendar.timegm((*fields, 0, 0, 0)[:6]))


@pytest.mark.parametrize(
    ("octets", "seconds"),
    [
        (bytes([7, 226, 8, 15, 8, 1, 15, 0]), 1534320075),
        (bytes([7, 226, 8, 15, 8, 1, 15, 0, 43, 2, 0]), 1534312875),
        (bytes([7, 226, 8, 15, 8, 1, 15, 0, 45, 2, 30]), 1534329075),
        (bytes([7, 226, 8, 15, 8, 1, 15, 25]), 1534320077),
        (bytes([7, 226, 8, 15, 8, 1, 15, 0, 43, 24, 60]), 1534320075 - 90000),
        (bytes(8), -62169984000),
        (bytes([7, 226, 13, 1, 0, 0, 0, 0]), unix(2019, 1, 1)),
        (bytes([7, 226, 2, 30, 24, 60, 60, 0]), unix(2018, 3, 3) + 3660),
        (bytes([255, 255, 1, 1, 0, 0, 0, 0]), unix(1535, 1, 1) + 160 * 146097 * 86400),
        (bytes([7, 226, 8]), None),
        (bytes([7, 226, 8, 15, 8, 1, 15, 0, 43, 2]), None),
        (bytes([7, 226, 8, 15, 8, 1, 15, 0, 44, 2, 0]), None),
        (bytes([7, 226, 8, 15, 8, 1, 15, 0, 43, 99, 99]), 1534320075 - 99 * 3660),
        (bytes([7, 226, 8, 15, 8, 1, 15, 0, 43, 100, 0]), None),
        ("2018", None),
        (5, None),
    ],
)
def test_date_and_time(octets: object, seconds: float | None) -> None:
    """A zone is optional, fields out of range carry over, and other octets are no date."""
    assert octet_dates.date_and_time(octets) == seconds


@given(st.dates())
def test_days_are_counted_as_in_the_calendar(date: datetime.date) -> None:
    """The numbers agree with Python for every date Python has."""
    assert (
        octet_dates.day_number(date.year, date.month, date.day)
        == (date - datetime.date(1970, 1, 1)).days
    )


@pytest.mark.parametrize(
    ("octets", "seconds"),
    [
        (bytes([0xE9, 0x4B, 0xC4, 0x00, 0xFF, 0xFF, 0xFF, 0xFF]), 0xE94BC400 - 2208988800),
        (bytes(8), -2208988800),
        (bytes(9), -2208988800),
        (bytes(7), None),
        (7, None),
    ],
)
def test_ntp_time_stamp(octets: object, seconds: float | None) -> None:
    """The first four octets are seconds since 1900; fewer than eight octets are no date."""
    assert octet_dates.ntp_time_stamp(octets) == seconds
