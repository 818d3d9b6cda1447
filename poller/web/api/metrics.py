"""The overview as Prometheus metrics.

To add a metric, yield it from the function of its subject below and describe it in docs/metrics.md;
a test compares the two. While the board cannot be read, only `poller_up 0`, level and build are
exposed: a gap in the graph, not old numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

import poller
from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.failures.dead_letter import Reason
from poller.domain.record.overview import TRAP_RESULTS, Load, Overview, State
from poller.presentation.health import Level
from poller.web.api import alert_metrics, job_metrics, poll_metrics, sink_metrics, worker_metrics
from poller.web.api.job_metrics import JobReading
from poller.web.api.metric_families import counter, gauge

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Counters of the board: name in `Overview.totals` -> help text. A counter that the board does not
#: have yet is not exposed as 0.
_TOTALS = {
    "samples": "Readings taken.",
    "missed_slots": "Slots that passed without a poll.",
    "retries": "Polls that were retried before their next slot.",
    "worker_stalls": "Workers that stalled, and then recovered or were ended.",
    "queue_entries_refused": "Queue entries that were no Celery messages and were set aside.",
    "store_failures": "Batches that were postponed because Redis or SQL failed.",
    "breaker_opened": "Breakers that opened after failures.",
    "breaker_closed": "Breakers that closed.",
    "traps_polls": "Polls that a trap demanded.",
    "breaker_skips": ("Slots skipped on purpose: an open breaker, a dark site or a dead letter."),
}


def render(
    overview: Overview | None,
    level: Level,
    jobs: Sequence[JobReading] | None = None,
    alerts: AlertNumbers | None = None,
) -> bytes:
    """Return the response to a scrape. The overview is None while the board cannot be read; jobs
    and alerts are None while they cannot be.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(OverviewCollector(overview, level, jobs, alerts))
    return generate_latest(registry)


class OverviewCollector(Collector):
    """Exposes one overview, its verdict and the jobs to the Prometheus client library."""

    def __init__(
        self,
        overview: Overview | None,
        level: Level,
        jobs: Sequence[JobReading] | None,
        alerts: AlertNumbers | None,
    ) -> None:
        self._overview = overview
        self._level = level
        self._jobs = jobs
        self._alerts = alerts

    def collect(self) -> Iterable[Metric]:
        is_up = self._overview is not None
        yield gauge("build_info", "The running version.", {poller.__version__: 1}, "version")
        levels = {level.value: int(level is self._level) for level in Level}
        yield gauge("health", "1 for the level of the verdict.", levels, "level")
        yield gauge("up", "1 when the board could be read.", int(is_up))
        if self._overview is not None:
            yield from _metrics(self._overview)
            if self._jobs is not None:
                yield from job_metrics.metrics(self._jobs)
            if self._alerts is not None:
                yield alert_metrics.open_alerts(self._alerts)


def _metrics(overview: Overview) -> Iterator[Metric]:
    yield gauge("as_of_timestamp_seconds", "When the board was read.", overview.as_of_ms / 1000)
    yield from _targets(overview)
    yield from _failures(overview)
    yield from _polls(overview)
    yield from _traps(overview)
    yield from _lateness(overview)
    yield from _queues(overview)
    yield from _leader(overview)
    yield from worker_metrics.metrics(overview)
    yield from sink_metrics.metrics(overview)


def _targets(overview: Overview) -> Iterator[Metric]:
    states = {state.value: overview.states.get(state, 0) for state in State}
    yield gauge("targets", "Enabled targets, by state.", states, "state")

    places = {
        "due": overview.due - overview.urgent,
        "urgent": overview.urgent,
        "in_flight": overview.in_flight,
        "parked": overview.parked,
        "held": overview.held,
    }
    yield gauge("board", "Enabled targets, by place on the board.", places, "place")

    yield gauge("overdue_targets", "Due targets past their slot.", overview.overdue)
    text = "Due targets past their slot by more than two of their intervals; a lower bound."
    yield gauge("long_overdue_targets", text, overview.long_overdue)


def _failures(overview: Overview) -> Iterator[Metric]:
    opened = {
        "failures": overview.breakers_open,
        "hand": overview.opened_by_hand,
    }
    yield gauge("breakers_open", "Targets with an open breaker, by cause.", opened, "by")

    letters = {reason.value: overview.dead_letters.get(reason.value, 0) for reason in Reason}
    yield gauge("dead_letters", "Targets that need a person, by reason.", letters, "reason")


def _polls(overview: Overview) -> Iterator[Metric]:
    yield from poll_metrics.metrics(overview.by_collector)
    for name, text in _TOTALS.items():
        yield counter(name, text, overview.totals.get(name, {}))

    yield gauge("polls_per_second", "Throughput of the last minute.", overview.polls_per_second)


def _traps(overview: Overview) -> Iterator[Metric]:
    results = {}
    for result in TRAP_RESULTS:
        name = f"traps_{result}"
        if name in overview.totals:
            results[result] = overview.totals[name]
    yield counter("traps", "Notifications received from devices, by result.", results, "result")


def _lateness(overview: Overview) -> Iterator[Metric]:
    """A summary: quantiles of the last five minutes; number and sum since the board was made."""
    lateness = overview.lateness
    name = "poller_lateness_seconds"
    text = "Start of a poll minus its slot; quantile 1 is the maximum of the last five minutes."
    summary = Metric(name, text, "summary")
    if lateness.count:
        quantiles = {"0.5": lateness.p50_ms, "0.99": lateness.p99_ms, "1": lateness.max_ms}
        for quantile, value_ms in quantiles.items():
            summary.add_sample(name, {"quantile": quantile}, value_ms / 1000)
    if overview.lateness_sum.count:
        summary.add_sample(f"{name}_count", {}, overview.lateness_sum.count)
        summary.add_sample(f"{name}_sum", {}, overview.lateness_sum.sum_ms / 1000)
    yield summary
    yield gauge("lateness_polls", "Polls that the quantiles are taken from.", lateness.count)


def _queues(overview: Overview) -> Iterator[Metric]:
    loads = {load.queue: load for load in overview.loads}

    waiting = {queue: load.waiting for queue, load in loads.items()}
    yield gauge("queue_batches", "Batches that wait, by queue.", waiting, "queue")

    overdue = {queue: load.overdue for queue, load in loads.items()}
    yield gauge(
        "queue_overdue_targets",
        "Due targets past their slot, by queue.",
        overdue,
        "queue",
    )

    soon = {queue: load.due_soon for queue, load in loads.items()}
    text = "Due targets past their slot or within 12 s of it, by queue."
    yield gauge("queue_due_soon_targets", text, soon, "queue")

    needed = {queue: load.needed_per_s for queue, load in loads.items()}
    yield gauge(
        "queue_needed_polls_per_second",
        "Polls per second that the targets of a queue need.",
        needed,
        "queue",
    )

    done = {queue: load.done_per_s for queue, load in loads.items()}
    yield gauge(
        "queue_done_polls_per_second",
        "Polls per second of a queue, over the last minute.",
        done,
        "queue",
    )

    workers = {queue: load.workers for queue, load in loads.items()}
    yield gauge("queue_workers", "Running workers that serve a queue.", workers, "queue")

    shortages = {queue: _shortage(load) for queue, load in loads.items()}
    yield gauge(
        "queue_shortage_ratio",
        "Needed workers / running workers; 0 when they keep up, +Inf when nothing is polled.",
        shortages,
        "queue",
    )

    yield gauge(
        "unserved_targets",
        "Targets of queues that no running worker serves.",
        overview.unserved,
        "queue",
    )


def _shortage(load: Load) -> float:
    return math.inf if load.shortage is None else load.shortage


def _leader(overview: Overview) -> Iterator[Metric]:
    leader = overview.leader
    yield gauge("leader_present", "1 when a leader schedules.", int(leader is not None))

    epochs = {leader.name: leader.epoch} if leader else {}
    yield gauge("leader", "Epoch of the leader, by its name.", epochs, "name")
    if leader:
        yield gauge("leader_epoch", "Epoch of the leader.", leader.epoch)
        yield counter("leader_changes", "Leaders since the board was made.", leader.epoch)
        since = leader.since_ms / 1000
        yield gauge("leader_since_timestamp_seconds", "When the leader took over.", since)

    yield gauge("standbys", "Schedulers that wait for the lock.", overview.standbys)
