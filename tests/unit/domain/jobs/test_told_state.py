"""Which event the state of a job calls for."""

from __future__ import annotations

import pytest

from poller.domain.jobs import told_state
from poller.domain.jobs.job_health import JobState
from poller.domain.record.event_kinds import Kind


@pytest.mark.parametrize(
    ("told", "state", "expected"),
    [
        ("", JobState.WAITING, ("ok", Kind.JOB_ADDED)),
        ("gone", JobState.FAILING, ("ok", Kind.JOB_ADDED)),
        ("ok", JobState.FAILING, ("failing", Kind.JOB_FAILED)),
        ("overdue", JobState.FAILING, ("failing", Kind.JOB_FAILED)),
        ("ok", JobState.OVERDUE, ("overdue", Kind.JOB_WENT_OVERDUE)),
        ("failing", JobState.UNSERVED, ("overdue", Kind.JOB_WENT_OVERDUE)),
        ("failing", JobState.OK, ("ok", Kind.JOB_RECOVERED)),
        ("overdue", JobState.OK, ("ok", Kind.JOB_RECOVERED)),
        ("failing", JobState.WAITING, ("ok", Kind.JOB_RECOVERED)),
    ],
)
def test_a_change_is_told(told: str, state: JobState, expected: tuple[str, Kind]) -> None:
    assert told_state.notice(told, state, is_gone=False) == expected


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("ok", JobState.OK),
        ("ok", JobState.WAITING),
        ("failing", JobState.FAILING),
        ("failing", JobState.RUNNING),
        ("overdue", JobState.RUNNING),
        ("overdue", JobState.UNSERVED),
        ("failing", JobState.PAUSED),
    ],
)
def test_what_still_holds_is_not_told_again(told: str, state: JobState) -> None:
    """A running job has neither failed nor recovered, and a paused one keeps what was told."""
    assert told_state.notice(told, state, is_gone=False) is None


def test_a_job_that_is_held_back_is_told_so_once_until_it_recovers() -> None:
    """Also if it had failed before. Between two pauses it is tried, which is no news."""

    def notice(told: str, state: JobState, is_held: bool) -> told_state.Notice | None:
        return told_state.notice(told, state, False, is_held)

    held = ("held back", Kind.JOB_HELD_BACK)
    for told in ("ok", "failing", "overdue"):
        assert notice(told, JobState.FAILING, True) == held
    for is_held in (True, False):
        assert notice("held back", JobState.FAILING, is_held) is None
        assert notice("held back", JobState.RUNNING, is_held) is None
    assert notice("ok", JobState.PAUSED, True) is None
    assert notice("held back", JobState.OK, False) == ("ok", Kind.JOB_RECOVERED)
    assert notice("held back", JobState.UNSERVED, True) == ("overdue", Kind.JOB_WENT_OVERDUE)


@pytest.mark.parametrize("told", ["", "ok", "failing", "held back", "overdue"])
def test_a_job_that_is_gone_is_told_once(told: str) -> None:
    for state in JobState:
        assert told_state.notice(told, state, is_gone=True) == ("gone", Kind.JOB_VANISHED)
        assert told_state.notice("gone", state, is_gone=True) is None
