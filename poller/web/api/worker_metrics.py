"""The metrics of workers, as their heartbeats tell them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import Metric

from poller.domain.record.overview import Overview, Worker
from poller.presentation import running_workers
from poller.web.api.metric_families import counter, gauge


def metrics(overview: Overview) -> Iterator[Metric]:
    """The metrics of all workers."""
    running = running_workers.count(overview)
    states = {"running": running, "lost": len(overview.workers) - running}
    yield gauge("workers", "Worker processes, by state.", states, "state")

    labels = overview.labels
    workers = {labels[worker.key]: worker for worker in overview.workers}
    yield from _worker_times(workers)
    yield from _worker_loads(workers)
    yield from _worker_spools(workers)
    yield from _worker_secrets(workers)


def _worker_times(workers: Mapping[str, Worker]) -> Iterator[Metric]:
    seen = {name: worker.seen_ms / 1000 for name, worker in workers.items()}
    yield gauge(
        "worker_seen_timestamp_seconds",
        "When a worker last sent a heartbeat.",
        seen,
        "worker",
    )

    started = {name: worker.started_ms / 1000 for name, worker in workers.items()}
    yield gauge("worker_start_timestamp_seconds", "When a worker started.", started, "worker")

    polled = {name: worker.polled_ms / 1000 for name, worker in workers.items()}
    yield gauge(
        "worker_polled_timestamp_seconds",
        "Heartbeat after the last poll of a worker.",
        polled,
        "worker",
    )


def _worker_loads(workers: Mapping[str, Worker]) -> Iterator[Metric]:
    polls = {name: worker.polls for name, worker in workers.items()}
    yield counter("worker_polls", "Polls since a worker started.", polls, "worker")

    in_flight = {name: worker.in_flight for name, worker in workers.items()}
    yield gauge("worker_in_flight", "Batches that a worker polls now.", in_flight, "worker")

    slots = {name: worker.slots for name, worker in workers.items()}
    yield gauge("worker_slots", "Batches that a worker can poll at a time.", slots, "worker")

    memory = {name: worker.rss_bytes for name, worker in workers.items()}
    yield gauge("worker_memory_bytes", "Resident memory of a worker.", memory, "worker")


def _worker_spools(workers: Mapping[str, Worker]) -> Iterator[Metric]:
    waiting = {name: worker.spool_waiting for name, worker in workers.items()}
    yield gauge(
        "worker_spooled_polls",
        "Polls with rows that wait on a worker's disk.",
        waiting,
        "worker",
    )

    dropped = {name: worker.spool_dropped for name, worker in workers.items()}
    yield counter(
        "worker_spool_dropped",
        "Polls with rows that a worker dropped.",
        dropped,
        "worker",
    )


def _worker_secrets(workers: Mapping[str, Worker]) -> Iterator[Metric]:
    hits = {name: worker.secret_hits for name, worker in workers.items()}
    yield counter(
        "worker_secret_hits",
        "Credentials that a batch needed and a worker knew.",
        hits,
        "worker",
    )

    misses = {name: worker.secret_misses for name, worker in workers.items()}
    yield counter(
        "worker_secret_misses",
        "Credentials that a worker had to read before it polled a batch.",
        misses,
        "worker",
    )
