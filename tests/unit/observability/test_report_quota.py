"""Reports are limited to one per kind and minute, and to a total per minute."""

from __future__ import annotations

from poller.observability import report_quota
from poller.observability.report_quota import Quota


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_kind_is_admitted_once_a_minute_with_the_number_of_suppressed_ones() -> None:
    """The next admitted report carries the count."""
    clock = Clock()
    quota = Quota(10, clock)
    assert quota.admit("a") == 0
    assert [quota.admit("a") for _ in range(5)] == [None] * 5
    clock.now = report_quota.PERIOD_S
    assert quota.admit("a") == 5


def test_all_kinds_together_are_limited() -> None:
    """A thousand kinds at once are limited to the total; the next minute has a new total."""
    clock = Clock()
    quota = Quota(3, clock)
    assert sum(quota.admit(number) is not None for number in range(1000)) == 3
    clock.now = report_quota.PERIOD_S
    assert sum(quota.admit(number) is not None for number in range(1000)) == 3


def test_memory_is_bounded() -> None:
    """Kinds that never repeat do not fill the memory of a worker."""
    quota = Quota(10**9, Clock())
    for number in range(10 * report_quota.KINDS):
        quota.admit(number)
    assert len(quota._kinds) == report_quota.KINDS
