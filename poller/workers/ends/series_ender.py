"""Ends of series after each round: which series end with its polls, and which shapes live on."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from poller.domain.metrics import series_ends
from poller.domain.metrics.series_ends import LastSent, SentNow, SeriesEnd
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.metering import process_metrics
from poller.sinks.api import Sample
from poller.workers.batch.finished_poll import FinishedPoll
from poller.workers.ends.end_samples import end_samples
from poller.workers.ends.known_shapes import KnownShapes
from poller.workers.ends.overdue_sweep import OverdueSweep
from poller.workers.ends.sent_readings import SentReadings
from poller.workers.ends.target_labels import TargetLabels


@dataclass(frozen=True, slots=True)
class RoundEnds:
    """The ends of a round."""

    samples: Sequence[Sample] = ()
    #: By target: the shape that was sent last and has not ended. A missing target has none.
    shapes: Mapping[int, int] = field(default_factory=dict)


NO_ENDS = RoundEnds()


class _Change(NamedTuple):
    """A poll after which series may have ended."""

    now: SentNow
    last: LastSent | None  # what this worker sent
    status: Status  # before the poll
    shape_elsewhere: int
    is_renamed: bool


class SeriesEnder:
    """One per worker process, safe for threads."""

    def __init__(
        self, known: KnownShapes, sent: SentReadings, labels: TargetLabels, sweep: OverdueSweep
    ) -> None:
        self.sent = sent
        self.sweep = sweep
        self._known = known
        self._labels = labels

    def end_round(self, polls: Iterable[FinishedPoll], retried: Collection[int]) -> RoundEnds:
        """Return the ends of a round, and store what was sent.

        Polls that are retried change nothing.
        """
        self.sweep.start()
        shapes: dict[int, int] = {}
        sent: list[LastSent] = []
        silent: list[int] = []
        changes: list[_Change] = []
        for poll in polls:
            target_id = poll.target.id
            if target_id in retried:
                continue
            now = _sent_now(poll)
            last = self.sent.get(target_id)
            if now.shape is None:
                silent.append(target_id)
            else:
                shapes[target_id] = now.shape.id
                sent.append(LastSent(now.target, now.shape, now.at_ms, poll.finished_ms))
                if last is None or last.shape is not now.shape:
                    self._known.note(now.shape)
            status = poll.started.status
            is_renamed = last is not None and self._labels.differ(last.target, now.target)
            if series_ends.may_end(now, last, status, is_renamed=is_renamed):
                elsewhere = series_ends.shape_elsewhere(now, last, status)
                changes.append(_Change(now, last, status, elsewhere, is_renamed))

        ends = self._ends(changes, shapes) if changes else []
        self.sent.update(sent, silent, time.monotonic())
        return RoundEnds(end_samples(ends), shapes)

    def _ends(self, changes: Sequence[_Change], shapes: dict[int, int]) -> list[SeriesEnd]:
        """Return the ends. A shape of a failed target that is not known here stays in `shapes`."""
        needed = {change.shape_elsewhere for change in changes if change.shape_elsewhere}
        found = self._known.find(needed) if needed else {}
        ends: list[SeriesEnd] = []
        for now, last, status, shape_id, is_renamed in changes:
            elsewhere = found.get(shape_id)
            if shape_id and elsewhere is None:
                shapes.setdefault(now.target.id, shape_id)
                if status.state is not State.FAILING:  # otherwise it was counted before
                    process_metrics.unknown_ends.add()
            ends += series_ends.after_poll(now, last, status, elsewhere, is_renamed=is_renamed)
        return ends


def _sent_now(poll: FinishedPoll) -> SentNow:
    readings = poll.outcome.readings
    if readings is None:
        return SentNow(poll.target, None, poll.finished_ms)
    return SentNow(poll.target, readings.series, poll.answered_ms)
