"""Steps of the server's clock against the monotonic clock of this process."""

from __future__ import annotations

import pytest

from poller.beat.clock_steps import ClockSteps

SERVER_MS = 1_800_000_000_000
MONO = 5_000.0


@pytest.mark.parametrize(
    ("server_ms", "own_s", "step_ms"),
    [
        (500, 0.5, 0),
        (60_000, 60.0, 0),  # this process was paused
        (4_000, 0.5, 0),  # a slow response
        (3_600_500, 0.5, 3_600_000),
        (-3_599_500, 0.5, -3_600_000),
        (500, 7.0, -6_500),
    ],
)
def test_a_step_is_the_difference_of_the_two_clocks(
    server_ms: int, own_s: float, step_ms: int
) -> None:
    """Small differences are no steps, and a step is reported once."""
    clock = ClockSteps()
    assert clock.check(SERVER_MS, MONO) == 0
    assert clock.check(SERVER_MS + server_ms, MONO + own_s) == step_ms
    assert clock.check(SERVER_MS + server_ms + 1_000, MONO + own_s + 1.0) == 0


def test_between_two_checks_time_goes_on() -> None:
    """A claim in the middle of a long tick uses the current instant."""
    clock = ClockSteps()
    clock.check(SERVER_MS, MONO)
    assert clock.now_ms(MONO + 2.5) == SERVER_MS + 2_500
