"""Site outages: when a site is dark, its canaries, and its recovery."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.failures import site_outage
from poller.domain.failures.site_outage import Limits, Outage, Window
from poller.domain.record.target_status import Status
from poller.domain.scheduling import slots

NOW = 1_800_000_000_000
LIMITS = Limits()


@pytest.mark.parametrize(
    ("polls", "dark", "expected"),
    [
        (0, 0, False),
        (9, 9, False),
        (10, 10, True),
        (100, 59, False),
        (100, 60, True),
        (10_000, 9_999, True),
    ],
)
def test_a_site_is_dark_when_most_of_its_polls_find_no_device(
    polls: int, dark: int, expected: bool
) -> None:
    """A few polls prove nothing."""
    assert site_outage.is_dark(Window(polls, dark), LIMITS) is expected


def test_a_short_window_shows_an_outage_before_a_long_one() -> None:
    """A good minute hides a new outage; a small site has enough polls in a minute only."""
    assert site_outage.first_dark([Window(40, 38, 20), Window(200, 38)], LIMITS) == Window(
        40, 38, 20
    )
    assert site_outage.first_dark([Window(9, 9, 20), Window(12, 12)], LIMITS) == Window(12, 12)
    assert site_outage.first_dark([Window(40, 4, 20), Window(200, 38)], LIMITS) is None


@given(st.integers(1, 2**40), st.integers(1_000, 86_400_000), st.integers(NOW, NOW + 86_400_000))
def test_a_target_of_a_recovered_site_waits_its_interval_or_a_minute_at_most(
    target_id: int, interval_ms: int, now_ms: int
) -> None:
    """A target with a shorter interval waits for its next slot."""
    at_ms = site_outage.return_ms(target_id, interval_ms, now_ms)
    assert now_ms < at_ms <= now_ms + min(interval_ms, slots.RESUME_WITHIN_MS)
    if interval_ms <= slots.RESUME_WITHIN_MS:
        assert at_ms == slots.next_slot_ms(target_id, interval_ms, now_ms)


@pytest.mark.parametrize(
    ("good", "asked", "expected"),
    [(0, 3, False), (1, 3, False), (2, 3, True), (1, 2, True), (1, 1, True), (0, 0, False)],
)
def test_half_of_the_canaries_prove_the_recovery(good: int, asked: int, expected: bool) -> None:
    """A good poll from before the probe proves nothing."""
    outage = Outage("west", 1, NOW - 90_000, NOW, tuple(range(asked)))
    statuses = [Status(ok_ms=NOW + 5)] * good + [Status(ok_ms=NOW - 1)] * (asked - good)
    assert site_outage.has_recovered(outage, statuses) is expected


def test_canaries_are_polled_twice_a_minute() -> None:
    """A clock that was set back does not delay the probe."""
    outage = Outage("west", 1, NOW, NOW)
    assert not site_outage.is_probe_due(outage, NOW + 29_999, LIMITS)
    assert site_outage.is_probe_due(outage, NOW + 30_000, LIMITS)
    assert site_outage.is_probe_due(outage, NOW - 3_600_000, LIMITS)


def test_canaries_are_different_targets_of_the_site() -> None:
    """A small site has fewer canaries."""
    assert site_outage.next_canaries([7, 8, 9, 10], [0.0, 0.999, 0.5], LIMITS) == (7, 10, 9)
    assert site_outage.next_canaries([7], [0.3, 0.3, 0.3], LIMITS) == (7,)
    assert site_outage.next_canaries([], [0.3, 0.3, 0.3], LIMITS) == ()
