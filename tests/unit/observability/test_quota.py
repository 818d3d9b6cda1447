"""The same thing is said once a minute, and all things together only so often."""

from __future__ import annotations

from poller.observability import report_quota
from poller.observability.report_quota import Quota


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_kind_is_said_once_in_a_minute_and_then_how_often_it_was_not() -> None:
    """Nothing is lost: the next report carries the count."""
    clock = Clock()
    limit = Quota(10, clock)
    assert limit.admit("a") == 0
    assert [limit.admit("a") for _ in range(5)] == [None] * 5
    clock.now = report_quota.PERIOD_S
    assert limit.admit("a") == 5


def test_all_kinds_together_are_limited() -> None:
    """A thousand different bugs at once are still only so many reports; the next minute has its own."""
    clock = Clock()
    limit = Quota(3, clock)
    assert sum(limit.admit(number) is not None for number in range(1000)) == 3
    clock.now = report_quota.PERIOD_S
    assert sum(limit.admit(number) is not None for number in range(1000)) == 3


def test_memory_is_bounded() -> None:
    """A bug that never looks the same twice does not fill the worker."""
    limit = Quota(10**9, Clock())
    for number in range(10 * report_quota.KINDS):
        limit.admit(number)
    assert len(limit._kinds) == report_quota.KINDS
