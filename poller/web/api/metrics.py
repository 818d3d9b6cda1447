"""The overview for Prometheus. Names are documented in docs/metrics.md; a test compares the two.

When the board cannot be read, only `poller_up 0` and the build are exposed: a gap, not old numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

import poller
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.outcome import Result
from poller.domain.record.overview import TRAP_RESULTS, Load, Overview, State, Worker
from poller.presentation import health

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Counters of the board, by their name there. One that is not kept is not exposed as 0.
_TOTALS = {
    "samples": "Readings taken.",
    "missed_slots": "Slots that passed without a poll.",
    "retries": "Polls that were tried again before their next slot.",
    "worker_stalls": "Workers that stood still: they recovered, or were ended for whoever supervises them.",
    "breaker_opened": "Breakers that opened because of failures.",
    "breaker_closed": "Breakers that closed.",
    "traps_polls": "Polls of devices because of what they announced.",
    "breaker_skips": "Slots left out on purpose: a breaker was open, a site was dark or a target was a dead letter.",
}

Values = Mapping[str, float] | float


def render(overview: Overview | None) -> bytes:
    """The text a scrape gets."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(OverviewCollector(overview))
    return generate_latest(registry)


class OverviewCollector(Collector):
    def __init__(self, overview: Overview | None) -> None:
        self._overview = overview

    def collect(self) -> Iterable[Metric]:
        build = _gauge("build_info", "The running version.", {poller.__version__: 1}, "version")
        up = _gauge("up", "1 when the board could be read.", 0 if self._overview is None else 1)
        return [build, up, *(_metrics(self._overview) if self._overview else ())]


def _metrics(overview: Overview) -> Iterator[Metric]:
    yield _gauge("as_of_timestamp_seconds", "When the board was read.", overview.as_of_ms / 1000)
    yield from _targets(overview)
    yield from _trouble(overview)
    yield from _polls(overview)
    for name, text, of_queue in _OF_A_QUEUE:
        yield _gauge(name, text, {load.queue: of_queue(load) for load in overview.loads}, "queue")
    yield _gauge(
        "unserved_targets", "Targets no running worker takes, by queue.", overview.unserved, "queue"
    )
    yield from _leader(overview)
    yield from _workers(overview)


def _targets(overview: Overview) -> Iterator[Metric]:
    states = {state.value: overview.states.get(state, 0) for state in State}
    places = {
        "due": overview.due,
        "in_flight": overview.in_flight,
        "parked": overview.parked,
        "held": overview.held,
    }
    yield _gauge("targets", "Enabled targets, by state.", states, "state")
    yield _gauge("board", "Enabled targets, by place on the board.", places, "place")
    yield _gauge("overdue_targets", "Due targets past their slot.", overview.overdue)
    text = "Due targets past their slot by more than two of their intervals; at least so many."
    yield _gauge("long_overdue_targets", text, overview.long_overdue)


def _trouble(overview: Overview) -> Iterator[Metric]:
    opened = {"failures": overview.breakers_open, "hand": overview.opened_by_hand}
    yield _gauge(
        "breakers_open", "Targets nobody asks for now, by who opened their breaker.", opened, "by"
    )
    letters = {reason.value: overview.dead_letters.get(reason.value, 0) for reason in Reason}
    yield _gauge("dead_letters", "Targets that need a person, by reason.", letters, "reason")


def _polls(overview: Overview) -> Iterator[Metric]:
    totals, late = overview.totals, overview.lateness
    outcomes = {result.value: totals.get(result.value, 0) for result in Result}
    seconds = {"0.5": late.p50_ms / 1000, "0.99": late.p99_ms / 1000, "1": late.max_ms / 1000}
    yield _counter("polls", "Finished polls, by outcome.", outcomes, "outcome")
    for name, text in _TOTALS.items():
        yield _counter(name, text, totals.get(name, {}))
    heard = {
        result: totals[f"traps_{result}"] for result in TRAP_RESULTS if f"traps_{result}" in totals
    }
    yield _counter("traps", "Notifications of devices, by what became of them.", heard, "result")
    yield _gauge("polls_per_second", "Throughput of the last minute.", overview.polls_per_second)
    yield _gauge(
        "lateness_seconds",
        "Start of a poll minus its slot, over the last five minutes; quantile 1 is the maximum.",
        seconds if late.count else {},
        "quantile",
    )
    yield _gauge("lateness_polls", "Polls these quantiles are taken from.", late.count)


def _leader(overview: Overview) -> Iterator[Metric]:
    leader = overview.leader
    yield _gauge("leader_present", "1 when a leader schedules.", 0 if leader is None else 1)
    yield _gauge(
        "leader",
        "Epoch of the leader, by its name.",
        {leader.name: leader.epoch} if leader else {},
        "name",
    )
    if leader:
        yield _gauge("leader_epoch", "Number of the leader, counted from the first.", leader.epoch)
        yield _gauge(
            "leader_since_timestamp_seconds", "When it began to lead.", leader.since_ms / 1000
        )
    yield _gauge("standbys", "Beat processes ready to lead.", overview.standbys)


def _workers(overview: Overview) -> Iterator[Metric]:
    running = health.workers_running(overview)
    states = {"running": running, "lost": len(overview.workers) - running}
    yield _gauge("workers", "Worker processes, by state.", states, "state")
    labels = overview.labels
    for name, text, value in _OF_A_WORKER:
        make = _counter if name in ("worker_polls", "worker_spool_dropped") else _gauge
        yield make(
            name, text, {labels[worker.key]: value(worker) for worker in overview.workers}, "worker"
        )


_OF_A_QUEUE: tuple[tuple[str, str, Callable[[Load], float]], ...] = (
    ("queue_batches", "Batches waiting, by queue.", lambda load: load.waiting),
    ("queue_overdue_targets", "Due targets past their slot, by queue.", lambda load: load.overdue),
    (
        "queue_needed_polls_per_second",
        "What the targets of a queue need.",
        lambda load: load.needed_per_s,
    ),
    (
        "queue_done_polls_per_second",
        "What its workers did in the last minute.",
        lambda load: load.done_per_s,
    ),
    ("queue_workers", "Running workers that serve a queue.", lambda load: load.workers),
    (
        "queue_shortage_ratio",
        "So many times the workers are needed; 0 when they keep up, +Inf when nothing is done.",
        lambda load: math.inf if load.shortage is None else load.shortage,
    ),
)
_OF_A_WORKER: tuple[tuple[str, str, Callable[[Worker], float]], ...] = (
    (
        "worker_seen_timestamp_seconds",
        "When a worker last reported.",
        lambda worker: worker.seen_ms / 1000,
    ),
    (
        "worker_start_timestamp_seconds",
        "When a worker started.",
        lambda worker: worker.started_ms / 1000,
    ),
    ("worker_polls", "Polls since a worker started.", lambda worker: worker.polls),
    ("worker_in_flight", "Batches a worker is busy with.", lambda worker: worker.in_flight),
    ("worker_slots", "Batches a worker can be busy with.", lambda worker: worker.slots),
    (
        "worker_polled_timestamp_seconds",
        "When a worker last told of a new poll.",
        lambda w: w.polled_ms / 1000,
    ),
    ("worker_memory_bytes", "Resident memory of a worker.", lambda worker: worker.rss_bytes),
    (
        "worker_spooled_polls",
        "Polls whose rows wait on a worker's disk.",
        lambda worker: worker.spool_waiting,
    ),
    (
        "worker_spool_dropped",
        "Polls whose rows a worker had to drop.",
        lambda worker: worker.spool_dropped,
    ),
)


def _gauge(name: str, text: str, values: Values, label: str = "") -> Metric:
    return _filled(
        GaugeMetricFamily(f"poller_{name}", text, labels=[label] if label else []), values
    )


def _counter(name: str, text: str, values: Values, label: str = "") -> Metric:
    return _filled(
        CounterMetricFamily(f"poller_{name}", text, labels=[label] if label else []), values
    )


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    if isinstance(values, Mapping):
        for label, value in values.items():
            family.add_metric([label], value)
    else:
        family.add_metric([], values)
    return family
