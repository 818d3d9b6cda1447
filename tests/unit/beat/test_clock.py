"""Did somebody set the clock?"""

from __future__ import annotations

import pytest

from poller.beat.clock_steps import Clock

AT_MS, AT_S = 1_800_000_000_000, 5_000.0


@pytest.mark.parametrize(
    ("server_ms", "own_s", "step_ms"),
    [
        (500, 0.5, 0),
        (60_000, 60.0, 0),  # we were paused, and so was nothing else
        (4_000, 0.5, 0),  # a slow answer is no step
        (3_600_500, 0.5, 3_600_000),
        (-3_599_500, 0.5, -3_600_000),
        (500, 7.0, -6_500),
    ],
)
def test_a_step_is_what_the_two_clocks_do_not_share(
    server_ms: int, own_s: float, step_ms: int
) -> None:
    """Small differences are nobody's doing."""
    clock = Clock()
    assert clock.look(AT_MS, AT_S) == 0
    assert clock.look(AT_MS + server_ms, AT_S + own_s) == step_ms
    assert clock.look(AT_MS + server_ms + 1_000, AT_S + own_s + 1.0) == 0


def test_between_two_looks_time_goes_on() -> None:
    """So that a claim in the middle of long work is not made at an old instant."""
    clock = Clock()
    clock.look(AT_MS, AT_S)
    assert clock.now_ms(AT_S + 2.5) == AT_MS + 2_500
