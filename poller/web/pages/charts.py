"""The two pictures of the page: throughput and lateness of the last 15 minutes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from poller.domain.record.overview import Overview
from poller.presentation import formatting
from poller.web.pages import plot

SPAN_MS = 15 * 60_000
SLICE_MS = 10_000
#: A small fleet has slices without a poll; a whole minute of them deserves to be seen.
GAP_MS = 60_000


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture and the labels at the top and the middle of its axis."""

    id: str
    svg: str
    axis: Mapping[str, str]


def draw(overview: Overview) -> tuple[Chart, Chart]:
    shown = plot.window(overview.as_of_ms, SPAN_MS, SLICE_MS)
    return _polls(overview, shown), _lateness(overview, shown)


def _polls(overview: Overview, shown: plot.Window) -> Chart:
    slices = [point for point in overview.recent if point.seconds > 0]
    polls = [
        plot.Sample(p.at_ms, p.polls / p.seconds) for p in slices
    ]  # without a poll a true zero
    failed = [plot.Sample(p.at_ms, p.failed / p.seconds) for p in slices]
    lines = [plot.Line("polls", polls, filled=True)]
    if plot.highest(failed, shown) > 0:
        lines.append(plot.Line("failed", failed))
    return _chart("polls", "Throughput", lines, overview, shown, formatting.rate)


def _lateness(overview: Overview, shown: plot.Window) -> Chart:
    # A slice without a poll has no lateness: a hole, not a zero.
    late = [plot.Sample(p.at_ms, p.lateness_p99_ms if p.polls else None) for p in overview.recent]
    return _chart(
        "lateness",
        "p99 lateness",
        [plot.Line("lateness", late)],
        overview,
        shown,
        formatting.duration,
    )


def _chart(
    name: str,
    title: str,
    lines: Sequence[plot.Line],
    overview: Overview,
    shown: plot.Window,
    unit: Callable[[float], str],
) -> Chart:
    samples = lines[0].samples
    top = plot.ceiling(plot.highest(samples, shown))
    polled = [plot.Sample(point.at_ms, 1.0) for point in overview.recent if point.polls]
    idle = plot.gaps(polled, shown, GAP_MS)
    sentence = _sentence(title, samples, shown, unit, sum(end - start for start, end in idle))
    return Chart(
        name, plot.svg(lines, shown, top, sentence, idle), {"top": unit(top), "half": unit(top / 2)}
    )


def _sentence(
    title: str,
    samples: Sequence[plot.Sample],
    shown: plot.Window,
    unit: Callable[[float], str],
    idle_ms: int,
) -> str:
    """The picture in words, for those who cannot see it."""
    values = [sample.value or 0.0 for sample in plot.visible(samples, shown)]
    if not values:
        return f"{title} over the last 15 minutes: nothing was measured."
    hole = f" Nothing was polled for {formatting.duration(idle_ms)}." if idle_ms else ""
    span = f"{unit(min(values))} to {unit(max(values))}, latest {unit(values[-1])}"
    return f"{title} over the last 15 minutes: {span}.{hole}"
