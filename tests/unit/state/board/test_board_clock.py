"""The board's clock by the monotonic clock: quick replies count, slow ones do no harm."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from poller.state.board.board_clock import DRIFT, BoardClock

OFFSET_MS = 1_700_000_000_000.0


def reply(
    clock: BoardClock, at_s: float, there_s: float, back_s: float, step_ms: float = 0
) -> float:
    """Record a reply whose request was sent at `at_s`. Returns the error of the offset in ms."""
    offset_ms = OFFSET_MS + step_ms
    now_ms = int((at_s + there_s) * 1000 + offset_ms)
    return clock.record(now_ms, at_s, at_s + there_s + back_s) - offset_ms


def test_a_slow_reply_after_a_quick_one_changes_nothing() -> None:
    """A reply that travelled for two seconds is no reason to move the clock by one."""
    clock = BoardClock()
    assert abs(reply(clock, 100.0, 0.0005, 0.0005)) <= 1
    assert abs(reply(clock, 101.0, 0.001, 2.0)) <= 2
    assert abs(reply(clock, 104.0, 2.0, 0.001)) <= 2


def test_the_reply_with_the_quickest_way_back_counts() -> None:
    """Its request may have been slow: the server reads its clock after that."""
    clock = BoardClock()
    assert reply(clock, 100.0, 0.01, 0.4) <= -390
    assert abs(reply(clock, 101.0, 0.4, 0.01)) <= 12
    assert abs(reply(clock, 102.0, 0.01, 0.4)) <= 12


def test_a_server_whose_clock_was_set_is_followed_at_once() -> None:
    """Forwards and back: a reply that contradicts the ones before counts alone."""
    clock = BoardClock()
    reply(clock, 100.0, 0.001, 0.001)
    assert abs(reply(clock, 101.0, 0.001, 0.001, step_ms=3_600_000)) <= 2
    assert abs(reply(clock, 102.0, 0.001, 0.001)) <= 2


@given(
    st.lists(
        st.tuples(
            st.floats(0, 100), st.floats(0, 3), st.floats(0, 3), st.floats(-DRIFT / 2, DRIFT / 2)
        ),
        min_size=1,
    )
)
def test_no_instant_is_too_late_or_before_the_reply(
    replies: list[tuple[float, float, float, float]],
) -> None:
    """So the runs of one target do not overlap in the ledger, whichever workers polled it."""
    clock, at_s, drifted_ms = BoardClock(), 50.0, 0.0
    for pause_s, there_s, back_s, drift in replies:
        at_s += pause_s
        drifted_ms += drift * pause_s * 1000
        now_ms = int((at_s + there_s) * 1000 + OFFSET_MS + drifted_ms)
        read_s = at_s + there_s + back_s
        offset_ms = clock.record(now_ms, at_s, read_s)
        assert now_ms - 0.5 <= read_s * 1000 + offset_ms
        assert offset_ms <= OFFSET_MS + drifted_ms + 0.5
        at_s = read_s
