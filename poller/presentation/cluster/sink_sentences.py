"""The sentences of the verdict about sinks in trouble."""

from __future__ import annotations

from collections.abc import Iterator

from poller.domain.record import sink_report
from poller.domain.record.overview import Overview
from poller.domain.record.sink_report import SinkReport, SinkState
from poller.domain.why.phrases import without_dot
from poller.presentation import formatting, running_workers


def troubles(overview: Overview) -> Iterator[str]:
    """One sentence for each sink that is down, refuses samples, or is behind."""
    for name, text in by_name(overview).items():
        yield f"{text} (poller sinks list {name})."


def by_name(overview: Overview) -> dict[str, str]:
    """The same by the name of the sink, without the command and the dot at the end."""
    reports = [each for worker in running_workers.running(overview) for each in worker.sinks]
    return {
        report.name: _text(report, overview.as_of_ms)
        for report in sink_report.combine(reports)
        if report.state is not SinkState.OK
    }


def _text(report: SinkReport, now_ms: int) -> str:
    if report.state is SinkState.DOWN:
        error = without_dot(report.error)
        return f"Sink {report.name} is down: {error}; {_waiting(report, now_ms)}"
    if report.state is SinkState.REFUSING:
        reason = without_dot(report.left_out_reason or report.error)
        return f"Sink {report.name} refuses samples: {reason}"
    return f"Sink {report.name} is behind: {_waiting(report, now_ms)}"


def _waiting(report: SinkReport, now_ms: int) -> str:
    wait = "waits" if report.spooled_polls == 1 else "wait"
    polls = f"{formatting.counted(report.spooled_polls, 'poll')} {wait} on disk"
    lag_ms = report.lag_ms(now_ms)
    return f"{polls}, the oldest for {formatting.age(lag_ms)}" if lag_ms else polls
