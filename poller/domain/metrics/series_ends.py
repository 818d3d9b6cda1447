"""Which series end: those that a poll no longer has, and those of a target that is polled no more.

A store shows the last value of a series for minutes, unless it is told that the series has ended.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import SeriesSet
from poller.domain.record.target_status import Status


class LastSent(NamedTuple):
    """The newest readings that a worker sent for a target."""

    target: PollTarget
    shape: SeriesSet
    at_ms: int  # of the readings
    finished_ms: int  # of their poll, as in the status of the target


class SentNow(NamedTuple):
    """The poll of a target that is over, without another attempt."""

    target: PollTarget
    shape: SeriesSet | None  # None: the poll has no readings
    at_ms: int  # of the readings, or the end of the poll


class Reason(enum.StrEnum):
    """Why series end."""

    VANISHED = "vanished"  # the next poll of the target does not have them
    FAILED = "failed"  # the next poll of the target has no readings
    RENAMED = "renamed"  # their target has other labels now
    GONE = "gone"  # their target is removed, disabled or left alone


class SeriesEnd(NamedTuple):
    """Series of a target that end together."""

    target: PollTarget
    shape: SeriesSet
    at_ms: int
    reason: Reason


class Standing(NamedTuple):
    """The state of a target on the board."""

    version: int | None  # of the target; None: it is removed or disabled
    finished_ms: int = 0  # end of its last poll
    left_over: int = 0  # the shape of a failing target that could not be ended by who polled it


def is_superseded(last: LastSent, finished_ms: int) -> bool:
    """Whether another worker polled the target since: its last poll on the board ended later."""
    return finished_ms > last.finished_ms


def label_facts(target: PollTarget) -> tuple[object, ...]:
    """Return all facts of a target that can be labels, see `outside_labels.Owner`."""
    named = (target.name, target.device, target.address, target.site, target.collector)
    return (*named, tuple(sorted(target.tags)))


def missing(old: SeriesSet, new: SeriesSet | None) -> SeriesSet | None:
    """Return the series that only the old shape has; None if there are none.

    A series is its name and labels: another kind or width makes no other series.
    """
    if new is None:
        return old if len(old) else None
    if old is new or old.id == new.id:
        return None
    kept = {(series.name, series.labels) for series in new.series}
    ended = tuple(each for each in old.series if (each.name, each.labels) not in kept)
    return SeriesSet(ended) if ended else None


def may_end(now: SentNow, last: LastSent | None, status: Status, *, is_renamed: bool) -> bool:
    """Whether series may end with a poll, by a glance. `status` is the one before the poll."""
    if now.shape is None:
        return last is not None or status.shape != 0
    return now.shape.id != status.shape or is_renamed


def shape_elsewhere(now: SentNow, last: LastSent | None, status: Status) -> int:
    """Return the id of the shape that another worker sent last; 0 if it is not needed."""
    if last is not None and not is_superseded(last, status.finished_ms):
        return 0
    is_same = now.shape is not None and now.shape.id == status.shape
    return 0 if is_same else status.shape


def after_poll(
    now: SentNow,
    last: LastSent | None,
    status: Status,
    elsewhere: SeriesSet | None,
    *,
    is_renamed: bool,
) -> list[SeriesEnd]:
    """Return the series that end with a poll.

    last: what this worker sent last. elsewhere: the shape of `shape_elsewhere`, if it is known.
    is_renamed: what this worker sent has other labels in a store.
    """
    ends = []
    before = elsewhere
    if last is not None and is_renamed:
        # A moment before the new readings: another store may have them under the same labels.
        ends.append(_end(last, now.at_ms - 1, Reason.RENAMED))
    elif last is not None and not is_superseded(last, status.finished_ms):
        before = last.shape

    ended = missing(before, now.shape) if before is not None else None
    if ended is not None:
        reason = Reason.FAILED if now.shape is None else Reason.VANISHED
        ends.append(SeriesEnd(now.target, ended, now.at_ms, reason))
    return ends


def is_waiting(last: LastSent, standing: Standing) -> bool:
    """Whether the target is on the board and was not polled since."""
    return standing.version is not None and not is_superseded(last, standing.finished_ms)


def overdue_end(
    last: LastSent, standing: Standing, now_ms: int, *, is_renamed: bool
) -> SeriesEnd | None:
    """Return the series that end for an overdue target; None if another worker sends them now.

    A target that waits is left alone: its site is dark, or an operator opened its breaker.
    A worker that does not know the series it has to end leaves their shape in the status of the
    failing target: then the worker that sent them ends them.
    """
    if standing.version is None or not is_superseded(last, standing.finished_ms):
        return _end(last, now_ms, Reason.GONE)
    if is_renamed:
        return _end(last, now_ms, Reason.RENAMED)
    if standing.left_over == last.shape.id:
        return _end(last, standing.finished_ms, Reason.FAILED)
    return None


def _end(last: LastSent, at_ms: int, reason: Reason) -> SeriesEnd:
    """End all series of the newest readings, after them in any case."""
    return SeriesEnd(last.target, last.shape, max(at_ms, last.at_ms + 1), reason)
