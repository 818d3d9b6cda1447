"""The waits for a destination that is down: short at first, bounded, and different per worker."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.failures.delivery_backoff import MOST_ASKED_S, wait_s


def test_waits_grow_from_one_second_to_half_a_minute() -> None:
    """A store that is restarted is found soon; a dead one is not asked every second."""
    assert [wait_s(failures, None, 1.0) for failures in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert [wait_s(failures, None, 0.0) for failures in range(1, 8)] == [1, 1, 2, 4, 8, 15, 15]


@given(st.integers(0, 10**9), st.floats(0, 1))
def test_every_wait_is_between_one_and_thirty_seconds(failures: int, chance: float) -> None:
    """Even after years of failures."""
    assert 1 <= wait_s(failures, None, chance) <= 30


def test_a_wait_that_the_store_asks_for_is_kept_and_bounded() -> None:
    """Workers come back within a tenth of it, not all at once."""
    assert wait_s(1, 60, 0.0) == 60
    assert wait_s(9, 60, 1.0) == 66
    assert wait_s(1, 86_400, 0.0) == MOST_ASKED_S
    assert wait_s(1, 0.01, 0.0) == 1
    assert wait_s(3, 0, 1.0) == wait_s(3, -5, 1.0) == 4
