"""The reports of one sink of this process, for the heartbeat: state, rates, lag, losses."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

from poller.domain.record import sink_report
from poller.domain.record.sink_report import SinkReport
from poller.sinks.api import Sample
from poller.sinks.made_sink import MadeSink
from poller.workers.results.delivery_record import LONGEST_CALL_S
from poller.workers.results.destination_writer import DestinationWriter

#: Rates are over this time.
WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class _Mark:
    """The counts of written polls and samples at one instant."""

    at_mono: float
    polls: int
    samples: int


class SinkMeter:
    """One per sink. One thread asks for reports, about once for each heartbeat."""

    def __init__(self, made: MadeSink, writer: DestinationWriter[Sample]) -> None:
        self._made = made
        self._writer = writer
        self._left_out = 0
        self._marks = deque([_Mark(time.monotonic(), 0, 0)])

    def report(self, now_ms: int) -> SinkReport:
        """Return the present state; `now_ms` is the instant of now on the clock of readers."""
        writer, record, left_out = self._writer, self._writer.record, self._made.left_out
        if left_out.samples > self._left_out:
            self._left_out = left_out.samples
            record.refused()
        polls_per_s, samples_per_s = self._rates()
        spooled_polls = writer.spool.polls
        error, hint, error_mono = record.error, record.hint, record.error_mono
        if record.call_s > LONGEST_CALL_S:
            error, hint = f"no answer for {record.call_s:.0f} s", ""
            error_mono = time.monotonic()
        return SinkReport(
            name=self._made.name,
            kind=self._made.kind,
            state=sink_report.judge(
                is_down=record.is_down,
                is_refused=record.is_refused,
                spooled_polls=spooled_polls,
            ),
            polls=record.polls,
            samples=record.samples,
            polls_per_s=polls_per_s,
            samples_per_s=samples_per_s,
            stored_ms=_instant_ms(record.written_mono, now_ms) if record.polls else 0,
            oldest_ms=self._oldest_ms(),
            spooled_polls=spooled_polls,
            spooled_bytes=writer.spool.size,
            error=error,
            hint=hint,
            error_ms=_instant_ms(error_mono, now_ms) if error else 0,
            retry_ms=_instant_ms(record.retry_mono, now_ms) if record.failures else 0,
            dropped=dict(writer.spool.dropped_by_reason),
            left_out=left_out.samples,
            left_out_reason=left_out.reason,
        )

    def _oldest_ms(self) -> int:
        waiting = self._writer.oldest_round()
        return min((sample.at_ms for sample in waiting), default=0)

    def _rates(self) -> tuple[float, float]:
        """Polls and samples per second since the oldest mark of the window."""
        record = self._writer.record
        now = _Mark(time.monotonic(), record.polls, record.samples)
        self._marks.append(now)
        while len(self._marks) > 2 and self._marks[1].at_mono <= now.at_mono - WINDOW_S:
            self._marks.popleft()
        first = self._marks[0]
        seconds = max(now.at_mono - first.at_mono, 1.0)
        return (now.polls - first.polls) / seconds, (now.samples - first.samples) / seconds


def _instant_ms(at_mono: float, now_ms: int) -> int:
    return now_ms + round((at_mono - time.monotonic()) * 1000)
