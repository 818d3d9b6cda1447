"""A job that costs a worker at every attempt is held back: its next attempts come ever later.

A run that is closed because its runner was lost is a loss. One loss is bad luck, several in a row
are the doing of the job: its handler ends the process, or takes all memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from poller.domain.failures import backoff
from poller.domain.jobs.job_run import JobRun

#: A job with so many losses in a row is held back.
LOSSES = 3
#: The pause after these, which each further loss doubles, and the longest.
PAUSE_MS = 5 * 60_000
LONGEST_PAUSE_MS = 60 * 60_000
#: A loss may be a little later than the reading of the clock that it is compared with.
AHEAD_MS = 60_000


def losses_in_a_row(ended: Iterable[JobRun]) -> int:
    """The number of losses since an attempt ended otherwise, from runs with the newest end first.

    A row has all attempts of its plan. An attempt that a stopping worker gave back is none.
    """
    losses = 0
    for run in ended:
        losses += run.losses
        if run.attempt > run.losses:
            break
    return losses


def until_ms(losses: int, lost_ms: int, now_ms: int) -> int | None:
    """Until when a job is held back after its losses, the last at `lost_ms`; None: it is not.

    Nor is it after a loss of the future: the clock was set back, and the pause might last for ever.
    """
    if losses < LOSSES or lost_ms > now_ms + AHEAD_MS:
        return None
    pause_ms = backoff.exponential(losses - LOSSES + 1, PAUSE_MS, LONGEST_PAUSE_MS)
    end_ms = lost_ms + round(pause_ms)
    return end_ms if end_ms > now_ms else None


def text(losses: int, held_until_ms: int) -> str:
    """`held back until 2026-11-18 03:45:00Z: its runner was lost 3 times in a row`."""
    at = datetime.fromtimestamp(held_until_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return f"held back until {at}: its runner was lost {losses} times in a row"
