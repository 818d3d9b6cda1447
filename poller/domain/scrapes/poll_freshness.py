"""Which poll answers a scrape of a target of the inventory: its last one, or one to wait for."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from poller.domain.failures import error_codes
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status

#: A poll and the writing of its readings take some time: the last poll is fresh for so much longer
#: than an interval, or for a quarter of a short interval.
GRACE_MS = 5_000


class Source(enum.Enum):
    """The answer to a scrape."""

    LAST_POLL = "last poll"
    FAILURE = "failure"  # the last poll read nothing, and no other is due
    NEXT_POLL = "next poll"  # has to be waited for


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer to a scrape, and why nothing can be read."""

    source: Source
    text: str = ""


def fresh_ms(interval_ms: int) -> int:
    """Return how old the last poll of a target may be."""
    return interval_ms + min(GRACE_MS, interval_ms // 4)


def judge(status: Status, read_ms: int | None, interval_ms: int, now_ms: int) -> Judgement:
    """Decide for an enabled target. `read_ms` is the instant of its newest stored readings.

    A scrape never hastens the poll of a target that fails: a dark site would be polled by all who
    look at it.
    """
    if status.decision is not None:
        interval_ms = max(interval_ms, status.decision.chosen_ms)
    limit_ms = fresh_ms(interval_ms)
    is_of_last_run = read_ms is not None and read_ms >= status.run_ms
    has_failed = status.state is State.FAILING and not _is_finding(status)
    if read_ms is not None and is_of_last_run and not has_failed and now_ms - read_ms <= limit_ms:
        return Judgement(Source.LAST_POLL)
    if status.parked_ms:
        return Judgement(Source.FAILURE, f"it needs a person since {_failure(status)}")
    if status.breaker.trips and has_failed:
        return Judgement(Source.FAILURE, f"its breaker is open after {_failure(status)}")
    if has_failed:  # retries and the next slot decide when to try again
        return Judgement(Source.FAILURE, _failure(status))
    return Judgement(Source.NEXT_POLL)


def _is_finding(status: Status) -> bool:
    """True if the failure is an answer that has readings."""
    return status.code in error_codes.FINDINGS


def _failure(status: Status) -> str:
    return f"{status.code}: {status.message}" if status.message else status.code
