"""Quiet hours go by the wall clock of their time zone, over midnight and over its changes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from poller import errors
from poller.domain.alerts.telling import quiet_hours

AMSTERDAM = "Europe/Amsterdam"


def end(texts: list[str], at: str, zone: str = AMSTERDAM) -> str:
    """The end of the quiet hours around an instant in UTC; "" outside of them."""
    now_ms = round(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)
    end_ms = quiet_hours.parse(texts, zone).end_ms(now_ms)
    if not end_ms:
        return ""
    return datetime.fromtimestamp(end_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M")


@pytest.mark.parametrize(
    ("texts", "at", "expected"),
    [
        (["22:00-07:00"], "2026-11-18T20:59", ""),  # 21:59 in winter
        (["22:00-07:00"], "2026-11-18T21:00", "2026-11-19T06:00"),
        (["22:00-07:00"], "2026-11-19T05:59", "2026-11-19T06:00"),
        (["22:00-07:00"], "2026-11-19T06:00", ""),
        (["22:00-07:00"], "2026-07-01T20:30", "2026-07-02T05:00"),  # summer: two hours ahead
        (["sat,sun 00:00-24:00"], "2026-11-21T12:00", "2026-11-22T23:00"),
        (["sat,sun 00:00-24:00"], "2026-11-20T12:00", ""),
        (["fri 18:00-24:00", "sat,sun 00:00-24:00"], "2026-11-20T18:00", "2026-11-22T23:00"),
        (["fri-mon 01:00-02:00"], "2026-11-23T00:30", "2026-11-23T01:00"),  # Monday
        (["fri-mon 01:00-02:00"], "2026-11-24T00:30", ""),
        (["22:00-03:30"], "2026-03-28T22:00", "2026-03-29T01:30"),  # 02:00 becomes 03:00
        (["22:00-03:30"], "2026-10-24T22:00", "2026-10-25T02:30"),  # 03:00 becomes 02:00
        ([], "2026-11-18T22:00", ""),
    ],
)
def test_quiet_hours_end_by_the_wall_clock(texts: list[str], at: str, expected: str) -> None:
    """The end is the next instant at which no span is on."""
    assert end(texts, at) == expected


def test_quiet_hours_for_ever_end_some_day() -> None:
    """Spans without a gap are followed for some days, so that something is told in the end."""
    assert end(["00:00-24:00"], "2026-11-18T12:00") > "2026-11-25"


@pytest.mark.parametrize(
    ("texts", "zone", "named"),
    [
        (["22-07"], "UTC", 'quiet_hours: "22-07"'),
        (["25:00-07:00"], "UTC", "25:00"),
        (["22:60-07:00"], "UTC", "22:60"),
        (["24:00-07:00"], "UTC", "begins where it ends"),
        (["07:00-07:00"], "UTC", "begins where it ends"),
        (["foo 22:00-07:00"], "UTC", "foo"),
        (["mon-xyz 22:00-07:00"], "UTC", "xyz"),
        (["22:00-07:00"], "Mars/Base", "time_zone"),
    ],
)
def test_a_wrong_span_is_refused(texts: list[str], zone: str, named: str) -> None:
    """The error names the wrong part and says what to write."""
    with pytest.raises(errors.InvalidInput) as raised:
        quiet_hours.parse(texts, zone)
    assert named in raised.value.message
    assert raised.value.hint
