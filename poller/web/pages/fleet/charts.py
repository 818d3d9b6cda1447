"""The two charts of the overview: throughput and lateness of the last 15 minutes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from poller.domain.record.overview import Overview
from poller.presentation import formatting
from poller.web.pages import plot

SPAN_MS = 15 * 60_000
SLICE_MS = 10_000
#: A hole without polls is shaded from this length on; a small fleet has shorter ones all the time.
GAP_MS = 60_000


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, and the labels at the top and the middle of its axis."""

    id: str
    svg: str
    axis: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Subject:
    """The meaning of a chart: its lines, of which the first sets the axis."""

    id: str
    title: str
    lines: Sequence[plot.Line]
    unit: Callable[[float], str]


def draw(overview: Overview) -> tuple[Chart, Chart]:
    """Draw throughput and lateness."""
    window = plot.window_until(overview.as_of_ms, SPAN_MS, SLICE_MS)

    polled = []
    for point in overview.recent:
        if point.polls:
            polled.append(plot.Sample(point.at_ms, 1.0))
    idle = plot.gaps(polled, window, GAP_MS)

    throughput = _throughput(overview, window)
    lateness = _lateness(overview)
    return _chart(throughput, window, idle), _chart(lateness, window, idle)


def _throughput(overview: Overview, window: plot.Window) -> _Subject:
    """Polls per second, and failed ones if there are any."""
    polls = []
    failed = []
    for point in overview.recent:
        if point.seconds > 0:
            polls_per_s = point.polls / point.seconds
            failed_per_s = point.failed / point.seconds
            polls.append(plot.Sample(point.at_ms, polls_per_s))
            failed.append(plot.Sample(point.at_ms, failed_per_s))

    lines = [plot.Line("polls", polls, filled=True)]
    if plot.highest(failed, window) > 0:
        lines.append(plot.Line("failed", failed))
    return _Subject("polls", "Throughput", lines, formatting.rate)


def _lateness(overview: Overview) -> _Subject:
    """The p99 lateness of each slice."""
    samples = []
    for point in overview.recent:
        # A slice without polls has no lateness: a hole, not a zero.
        value = point.lateness_p99_ms if point.polls else None
        samples.append(plot.Sample(point.at_ms, value))

    lines = [plot.Line("lateness", samples)]
    return _Subject("lateness", "p99 lateness", lines, formatting.duration)


def _chart(subject: _Subject, window: plot.Window, idle: Sequence[plot.Gap]) -> Chart:
    """Draw a chart; `idle` are the spans without a poll."""
    samples = subject.lines[0].samples
    top = plot.ceiling(plot.highest(samples, window))
    sentence = _sentence(subject, window, idle)
    svg = plot.svg(subject.lines, window, top, sentence, idle)

    axis = {"top": subject.unit(top), "half": subject.unit(top / 2)}
    return Chart(subject.id, svg, axis)


def _sentence(subject: _Subject, window: plot.Window, idle: Sequence[plot.Gap]) -> str:
    """The chart in words, for screen readers."""
    title = f"{subject.title} over the last 15 minutes"
    samples = plot.visible(subject.lines[0].samples, window)
    values = [sample.value or 0.0 for sample in samples]
    if not values:
        return f"{title}: nothing was measured."

    lowest = subject.unit(min(values))
    highest = subject.unit(max(values))
    latest = subject.unit(values[-1])
    text = f"{title}: {lowest} to {highest}, latest {latest}."

    idle_ms = sum(end_ms - start_ms for start_ms, end_ms in idle)
    if idle_ms:
        text += f" Nothing was polled for {formatting.duration(idle_ms)}."
    return text
