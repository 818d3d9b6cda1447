"""Which event a job's state calls for, from what the last event told. The catalogue stores that."""

from __future__ import annotations

from typing import NamedTuple

from poller.domain.jobs.job_health import JobState
from poller.domain.record.event_kinds import Kind

#: What an event told: nothing yet, all is well, or what is wrong.
NEW = ""
OK = "ok"
FAILING = "failing"
HELD_BACK = "held back"
OVERDUE = "overdue"
GONE = "gone"


class Notice(NamedTuple):
    """An event to record, and what it tells."""

    told: str
    kind: Kind


def notice(told: str, state: JobState, is_gone: bool, is_held: bool = False) -> Notice | None:
    """The event for a job; None if the last one still holds.

    A running job neither failed nor recovered yet. A paused one keeps what was told. One that is
    held back is told so once, until it recovers: between two pauses it is tried.
    """
    if is_gone:
        return None if told == GONE else Notice(GONE, Kind.JOB_VANISHED)
    if told in (NEW, GONE):
        return Notice(OK, Kind.JOB_ADDED)
    if state is JobState.FAILING and is_held and told != HELD_BACK:
        return Notice(HELD_BACK, Kind.JOB_HELD_BACK)
    if state is JobState.FAILING and told not in (FAILING, HELD_BACK):
        return Notice(FAILING, Kind.JOB_FAILED)
    if state in (JobState.OVERDUE, JobState.UNSERVED) and told != OVERDUE:
        return Notice(OVERDUE, Kind.JOB_WENT_OVERDUE)
    is_well = state is JobState.OK or (state is JobState.WAITING and told in (FAILING, HELD_BACK))
    if is_well and told != OK:
        return Notice(OK, Kind.JOB_RECOVERED)
    return None
