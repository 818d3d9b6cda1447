"""When is a site dark, who asks for it, and when is it back?"""

from __future__ import annotations

import pytest

from poller.domain import site
from poller.domain.site import Limits, Outage, Window
from poller.domain.status import Status

NOW = 1_800_000_000_000
LIMITS = Limits()


@pytest.mark.parametrize(
    ("polls", "dark", "expected"),
    [(0, 0, False), (9, 9, False), (10, 10, True), (100, 59, False), (100, 60, True), (10_000, 9_999, True)],
)
def test_a_site_is_dark_when_most_of_its_polls_find_nobody(polls: int, dark: int, expected: bool) -> None:
    """And when there are enough of them to be sure."""
    assert site.is_dark(Window(polls, dark), LIMITS) is expected


@pytest.mark.parametrize(
    ("good", "asked", "expected"),
    [(0, 3, False), (1, 3, False), (2, 3, True), (1, 2, True), (1, 1, True), (0, 0, False)],
)
def test_half_of_the_canaries_bring_it_back(good: int, asked: int, expected: bool) -> None:
    """An answer from before they were asked proves nothing."""
    outage = Outage("west", 1, NOW - 90_000, NOW, tuple(range(asked)))
    statuses = [Status(ok_ms=NOW + 5)] * good + [Status(ok_ms=NOW - 1)] * (asked - good)
    assert site.has_recovered(outage, statuses) is expected


def test_canaries_are_asked_twice_a_minute() -> None:
    """Also after the clock was set back."""
    outage = Outage("west", 1, NOW, NOW)
    assert not site.ask_again(outage, NOW + 29_999, LIMITS)
    assert site.ask_again(outage, NOW + 30_000, LIMITS)
    assert site.ask_again(outage, NOW - 3_600_000, LIMITS)


def test_canaries_are_different_targets_of_the_site() -> None:
    """As many as there are, if these are fewer."""
    assert site.next_canaries([7, 8, 9, 10], [0.0, 0.999, 0.5], LIMITS) == (7, 10, 9)
    assert site.next_canaries([7], [0.3, 0.3, 0.3], LIMITS) == (7,)
    assert site.next_canaries([], [0.3, 0.3, 0.3], LIMITS) == ()
