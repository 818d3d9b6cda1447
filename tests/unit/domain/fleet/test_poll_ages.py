"""The bands of the age of data, in intervals of the target."""

from __future__ import annotations

import pytest

from poller.domain.fleet import poll_ages
from poller.domain.fleet.poll_ages import PollAges


@pytest.mark.parametrize(
    ("age_s", "band"),
    [(-5, 0), (0, 0), (30, 0), (31, 1), (60, 1), (61, 2), (90, 2), (91, 3), (180, 3), (181, 4)],
)
def test_an_edge_belongs_to_the_band_below(age_s: int, band: int) -> None:
    """A target with an interval of a minute; an age below zero comes from clocks that differ."""
    assert poll_ages.band(age_s * 1000, 60_000) == band


def test_a_target_without_an_interval_is_in_the_first_band() -> None:
    """A damaged record makes nothing old."""
    assert poll_ages.band(10**9, 0) == 0


def test_parts_of_a_fleet_are_added_up() -> None:
    """Old are the targets of the last two bands; one without a good poll has no age."""
    parts = [PollAges((1, 2, 3, 4, 5), 6, 7, 1, 1), PollAges((1, 0, 0, 0, 1), late=1)]
    found = poll_ages.total(parts)
    assert found == PollAges((2, 2, 3, 4, 6), 6, 7, 1, 1, 1)
    assert (found.old, found.looked_at) == (10, 23)
    assert poll_ages.total([]) == PollAges()
