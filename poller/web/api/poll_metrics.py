"""The metrics of polls by collector: outcomes, error codes, and histograms of their times.

The counters are those of the board, so they outlive every worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from poller.domain.failures.outcome import Result
from poller.domain.metrics.poll_totals import EDGES_MS, PollTotals, Time

_EDGES = [f"{edge / 1000:g}" for edge in EDGES_MS] + ["+Inf"]
#: Name and help text of each histogram.
_HISTOGRAMS = {
    Time.DURATION: ("poller_poll_duration_seconds", "Durations of attempts."),
    Time.QUEUE_WAIT: ("poller_poll_queue_wait_seconds", "From the claim to the first start."),
    Time.LATENESS: ("poller_poll_lateness_seconds", "From the slot to the first start."),
}


def metrics(by_collector: Mapping[str, PollTotals]) -> Iterator[Metric]:
    """The metrics of all collectors that ever polled."""
    yield _polls(by_collector)
    yield _errors(by_collector)
    for time, (name, text) in _HISTOGRAMS.items():
        yield _histogram(by_collector, time, name, text)


def _polls(by_collector: Mapping[str, PollTotals]) -> Metric:
    """All outcomes, also those that did not happen: the first failure is then a rise from 0."""
    text = "Finished polls, by collector and outcome."
    family = CounterMetricFamily("poller_polls", text, labels=["collector", "outcome"])
    for collector, totals in by_collector.items():
        for result in Result:
            family.add_metric([collector, result.value], totals.outcomes[result.value])
    return family


def _errors(by_collector: Mapping[str, PollTotals]) -> Metric:
    text = "Failed attempts, by collector and error code."
    family = CounterMetricFamily("poller_poll_errors", text, labels=["collector", "code"])
    for collector, totals in by_collector.items():
        for code, number in totals.codes.items():
            family.add_metric([collector, code], number)
    return family


def _histogram(by_collector: Mapping[str, PollTotals], time: Time, name: str, text: str) -> Metric:
    family = HistogramMetricFamily(name, text, labels=["collector"])
    for collector, totals in by_collector.items():
        values = totals.times[time]
        counts = values.cumulative()
        if counts[-1]:
            buckets = list(zip(_EDGES, counts, strict=True))
            family.add_metric([collector], buckets, values.sum_ms / 1000)
    return family
