"""A range is planned so that its answer takes bounded memory, whatever was asked for."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.history.resolution import KeptSpans, Resolution
from poller.domain.series import series_plan
from poller.domain.series.series_plan import MOST_POINTS, POINTS, Range, SeriesPlan

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOW = 20_000 * DAY
KEPT = KeptSpans(35 * DAY, 400 * DAY, 730 * DAY)


def plan(asked: Range, kept: KeptSpans = KEPT) -> SeriesPlan:
    return series_plan.plan(asked, MINUTE, kept, NOW)


def test_a_range_of_all_time_is_read_as_far_as_anything_is_kept() -> None:
    """The start moves to where rows may still be; the buckets that are read stay few."""
    found = plan(Range(0, NOW))
    assert found.resolution is Resolution.HOUR
    assert NOW - 800 * DAY < found.start_ms < NOW - 730 * DAY
    assert 0 < found.points <= POINTS
    assert "these reach back 730 d" in found.why


def test_a_range_before_everything_is_read_and_is_short() -> None:
    """A month of long ago has no values, and costs no memory."""
    found = plan(Range(0, 31 * DAY))
    assert (found.start_ms, found.end_ms) == (0, 31 * DAY)
    assert plan(Range(0, 10_000 * DAY)).start_ms > 9_000 * DAY


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Range(NOW - DAY, NOW, 367 * DAY), "at most 366d"),
        (Range(NOW - DAY, NOW, 999), "at least 1s"),
        (Range(NOW + 2 * DAY, NOW + 3 * DAY), "has not begun"),
        (Range(NOW, NOW), "empty"),
        (Range(NOW - DAY, NOW, 1_000), "more than 11,000"),
    ],
)
def test_what_cannot_be_read_is_refused(asked: Range, said: str) -> None:
    """The error names the option."""
    with pytest.raises(errors.InvalidInput, match=said):
        plan(asked)


@pytest.mark.parametrize("days", [1, 3, 40, 500, 100_000])
@pytest.mark.parametrize("step_ms", [None, 2 * HOUR, 7 * DAY, 366 * DAY])
def test_no_plan_has_more_points_than_are_allowed(days: int, step_ms: int | None) -> None:
    """Neither does it read more than some years of hours."""
    found = plan(Range(max(0, NOW - days * DAY), NOW, step_ms))
    assert found.points <= MOST_POINTS
    assert found.end_ms - found.start_ms <= 1_500 * DAY


def test_a_range_ends_soon_after_now() -> None:
    """An end of the year 9999 is the present."""
    assert plan(Range(NOW - DAY, 2**60)).end_ms <= NOW + 2 * DAY
