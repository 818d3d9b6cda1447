"""The devices' clock."""

from __future__ import annotations

import time

import pytest

from poller import errors
from poller.sim import clock


def test_a_frozen_clock_stands_still() -> None:
    """It shows the same time whenever it is asked."""
    stopped = clock.frozen(1000.0)
    assert [stopped.now(), stopped.now()] == [1000.0, 1000.0]


def test_a_fast_clock_runs_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second on the wall is a minute for the devices."""
    moment = 50.0
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    fast = clock.Clock(1000.0, 60.0, made=moment)
    moment += 2
    assert fast.now() == 1120.0


def test_the_usual_clock_is_the_wall() -> None:
    """Two processes agree on it."""
    assert abs(clock.Clock().now() - time.time()) < 1


@pytest.mark.parametrize("rate", [-1.0, 1e9, float("nan")])
def test_a_clock_does_not_run_backwards(rate: float) -> None:
    """A rate out of range is refused."""
    with pytest.raises(errors.InvalidInput, match="rate"):
        clock.Clock(0.0, rate)
