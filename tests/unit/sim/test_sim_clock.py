"""The clock of the simulated devices."""

from __future__ import annotations

import time

import pytest

from poller import errors
from poller.sim import clock


def test_a_frozen_clock_stands_still() -> None:
    """A frozen clock always shows the same time."""
    stopped = clock.frozen(1000.0)
    assert [stopped.now(), stopped.now()] == [1000.0, 1000.0]


def test_a_fast_clock_runs_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a rate of 60, a second is a minute for the devices."""
    moment = 50.0
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    fast = clock.Clock(1000.0, 60.0, made=moment)
    moment += 2
    assert fast.now() == 1120.0


def test_the_default_clock_is_the_wall_clock() -> None:
    """The default clock is the wall clock, on which processes agree."""
    assert abs(clock.Clock().now() - time.time()) < 1


@pytest.mark.parametrize("rate", [-1.0, 1e9, float("nan")])
def test_a_clock_does_not_run_backwards(rate: float) -> None:
    """A rate out of range is refused, also a negative one."""
    with pytest.raises(errors.InvalidInput, match="rate"):
        clock.Clock(0.0, rate)
