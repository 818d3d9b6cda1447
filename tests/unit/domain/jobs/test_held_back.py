"""A job that costs a worker at every attempt is tried ever later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.jobs import held_back
from poller.domain.jobs.job_health import JobState, JobSummary
from poller.domain.jobs.job_run import FailureCode, Status
from tests.unit.domain.jobs.test_job_health import NOON, run, seen

MINUTE_MS = 60_000
counts = st.integers(0, 10**9)


@pytest.mark.parametrize(
    ("losses", "minutes"),
    [(0, None), (2, None), (3, 5), (4, 10), (5, 20), (6, 40), (7, 60), (8, 60), (10**9, 60)],
)
def test_the_pause_is_doubled_up_to_an_hour(losses: int, minutes: int | None) -> None:
    expected = None if minutes is None else NOON + minutes * MINUTE_MS
    assert held_back.until_ms(losses, NOON, NOON) == expected


@given(losses=counts, more=counts, lost_ms=st.integers(0, 2**53))
def test_the_pause_never_shrinks_and_is_bounded(losses: int, more: int, lost_ms: int) -> None:
    first = held_back.until_ms(losses, lost_ms, lost_ms) or lost_ms
    later = held_back.until_ms(losses + more, lost_ms, lost_ms) or lost_ms
    assert lost_ms <= first <= later <= lost_ms + held_back.LONGEST_PAUSE_MS


@pytest.mark.parametrize(
    ("ended", "losses"),
    [
        ([], 0),
        ([(1, 0)], 0),  # a success, or a failure by exception
        ([(1, 1), (2, 2)], 3),
        ([(1, 1), (1, 0), (2, 2)], 1),
        ([(3, 2), (2, 2)], 2),  # its first attempt failed otherwise
        ([(0, 0), (2, 2)], 2),  # the newest was given back by a stopping worker
    ],
)
def test_losses_are_counted_since_an_attempt_that_ended_otherwise(
    ended: list[tuple[int, int]], losses: int
) -> None:
    """Each run has attempts, the last of which were lost."""
    runs = [run(NOON, attempt=attempt, losses=lost) for attempt, lost in ended]
    assert held_back.losses_in_a_row(runs) == losses


def test_a_job_that_is_held_back_is_failing() -> None:
    """Also when its plans are missing for long, which is the point of it."""
    lost = run(NOON, Status.FAILED, error_code=FailureCode.STALE_TIMEOUT, losses=3, attempt=3)
    summary = JobSummary(lost, losses=7, lost_ms=NOON)
    assert seen(summary, NOON + 59 * MINUTE_MS) is JobState.FAILING
    assert summary.held_until_ms(NOON + 59 * MINUTE_MS) == NOON + 60 * MINUTE_MS
    assert summary.held_until_ms(NOON + 60 * MINUTE_MS) is None
    assert summary.held_until_ms(NOON - 2 * MINUTE_MS) is None  # the clock was set back


def test_the_text_says_until_when_and_why() -> None:
    expected = "held back until 1970-01-01 00:05:00Z: its runner was lost 3 times in a row"
    assert held_back.text(3, 300_000) == expected
