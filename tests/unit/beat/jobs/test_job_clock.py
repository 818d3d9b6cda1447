"""The database's clock as a leader knows it."""

from __future__ import annotations

import time

import pytest

from poller.beat.jobs.job_clock import JobClock

NOW_MS = 1_800_000_000_000


@pytest.fixture
def mono(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock of this process; a test sets its first item."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


def test_it_is_unknown_at_first_and_goes_on_between_readings(mono: list[float]) -> None:
    clock = JobClock()
    assert clock.now_ms() is None
    clock.record(NOW_MS, 99.99, 100.0)
    mono[0] = 103.5
    assert clock.now_ms() == NOW_MS + 3_500


def test_it_is_never_ahead(mono: list[float]) -> None:
    """The database read its clock before the reply came."""
    clock = JobClock()
    mono[0] = 100.4
    clock.record(NOW_MS, 100.0, 100.4)  # read by the database between the two
    assert clock.now_ms() == NOW_MS


def test_a_slow_reading_does_not_replace_a_good_one(mono: list[float]) -> None:
    """Jobs would be late by the time that the reply took, until it is the only recent one."""
    clock = JobClock()
    clock.record(NOW_MS, 100.0, 100.0)
    mono[0] = 105.0
    clock.record(NOW_MS + 4_600, 104.6, 105.0)
    assert clock.now_ms() == NOW_MS + 5_000
    mono[0] = 170.0
    clock.record(NOW_MS + 69_600, 169.6, 170.0)
    assert clock.now_ms() == NOW_MS + 69_600


@pytest.mark.parametrize("step_ms", [-600_000, 600_000])
def test_a_clock_that_was_set_is_followed_at_once(mono: list[float], step_ms: int) -> None:
    clock = JobClock()
    clock.record(NOW_MS, 100.0, 100.0)
    clock.record(NOW_MS + step_ms, 99.0, 100.0)
    assert clock.now_ms() == NOW_MS + step_ms
