"""New polls change their own days, and the days that a rate to a neighbour crosses."""

from __future__ import annotations

from poller.domain.rollups.touched_days import LONGEST_GAP_DAYS, touched_days
from tests.unit.domain.rollups.history_polls import DAY, HOUR, MINUTE, START


def test_polls_within_a_day_change_that_day() -> None:
    """The polls beside them are of the same day."""
    hour = (START + 5 * HOUR, START + 6 * HOUR)
    assert touched_days(*hour) == {START}
    assert touched_days(*hour, START + 5 * HOUR - MINUTE, START + 7 * HOUR) == {START}


def test_the_first_polls_of_a_day_change_the_day_before() -> None:
    """The rate from the last poll before midnight crosses it; one that ends at 00:00 does not."""
    first = START + 5_000
    assert touched_days(first, first + HOUR, START - 55_000) == {START - DAY, START}
    assert touched_days(START - HOUR, START - 5_000, None, START) == {START - DAY}
    assert touched_days(START - HOUR, START - 5_000, None, first) == {START - DAY, START}


def test_every_day_of_a_gap_gets_its_part_of_the_average() -> None:
    """Of a very long gap only the ends do."""
    assert len(touched_days(START, START, START - 7 * DAY + MINUTE)) == 8
    long_ago = START - (LONGEST_GAP_DAYS + 5) * DAY
    assert touched_days(START + 1, START + 1, long_ago) == {long_ago, START}
