"""The metrics of sinks, as the heartbeats of workers tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from poller.domain.record.overview import Overview
from poller.domain.record.sink_report import SinkReport, SinkState
from poller.presentation import running_workers

Rows = Sequence[tuple[str, SinkReport]]


def metrics(overview: Overview) -> Iterator[Metric]:
    """The metrics of every sink in every running worker."""
    rows = [
        (overview.labels[worker.key], report)
        for worker in running_workers.running(overview)
        for report in worker.sinks
    ]
    yield _states(rows)
    yield from _deliveries(rows)
    yield from _waiting(rows, overview.as_of_ms)
    yield _dropped(rows)


def _states(rows: Rows) -> Metric:
    family = GaugeMetricFamily(
        "poller_sink_state",
        "1 for the state of a sink in a worker, 0 for the others.",
        labels=["sink", "worker", "state"],
    )
    for worker, report in rows:
        for state in SinkState:
            family.add_metric([report.name, worker, state.value], float(report.state is state))
    return family


def _deliveries(rows: Rows) -> Iterator[Metric]:
    yield _counter("polls", "Polls that a sink stored.", rows, lambda each: each.polls)
    yield _counter("samples", "Samples that a sink stored.", rows, lambda each: each.samples)
    yield _counter(
        "left_out_samples",
        "Single samples that a sink left out for good.",
        rows,
        lambda each: each.left_out,
    )


def _waiting(rows: Rows, now_ms: int) -> Iterator[Metric]:
    yield _gauge(
        "lag_seconds",
        "Age of the oldest poll that a sink has not stored yet.",
        rows,
        lambda each: each.lag_ms(now_ms) / 1000,
    )
    yield _gauge(
        "spooled_polls",
        "Polls that wait on disk for a sink.",
        rows,
        lambda each: each.spooled_polls,
    )
    yield _gauge(
        "spooled_bytes", "Disk space of these polls.", rows, lambda each: each.spooled_bytes
    )


def _dropped(rows: Rows) -> Metric:
    family = CounterMetricFamily(
        "poller_sink_dropped_polls",
        "Polls that will not reach a sink, by reason.",
        labels=["sink", "worker", "reason"],
    )
    for worker, report in rows:
        for reason, polls in {"full": 0, "refused": 0, **report.dropped}.items():
            family.add_metric([report.name, worker, reason], polls)
    return family


def _gauge(name: str, text: str, rows: Rows, value: Callable[[SinkReport], float]) -> Metric:
    family = GaugeMetricFamily(f"poller_sink_{name}", text, labels=["sink", "worker"])
    for worker, report in rows:
        family.add_metric([report.name, worker], value(report))
    return family


def _counter(name: str, text: str, rows: Rows, value: Callable[[SinkReport], float]) -> Metric:
    family = CounterMetricFamily(f"poller_sink_{name}", text, labels=["sink", "worker"])
    for worker, report in rows:
        family.add_metric([report.name, worker], value(report))
    return family
