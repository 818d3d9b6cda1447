"""Workers and domains as JSON, schema `poller.workers/1`. Fields may be added, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, Field

from poller.domain.metrics.queue_times import QueueTimes
from poller.domain.record.overview import Load, Overview, Worker
from poller.domain.scheduling import queue_routing, unroutable, worker_drain
from poller.presentation import running_workers
from poller.presentation.record import instants
from poller.presentation.record.instants import Instant

SCHEMA = "poller.workers/1"
NO_TIMES = QueueTimes()
#: The time over which used worker-seconds are added up.
MINUTE_S = 60.0


class DrainItem(BaseModel):
    """A drain: the worker finishes what it has, and takes nothing new until its end."""

    since: Instant | None
    until: Instant | None
    by: str
    reason: str
    is_done: bool = Field(description="True: it left its queues and finished what it had.")


class WorkerItem(BaseModel):
    """One worker process."""

    name: str
    state: Literal["running", "lost"]
    pid: int | None = Field(description="On its host; null if it does not tell.")
    seen: Instant | None = Field(description="Its last heartbeat.")
    started: Instant | None
    last_poll: Instant | None
    last_poll_seconds: int | None = Field(description="Since its last poll.")
    seen_seconds: int = Field(description="Since its last heartbeat.")
    polls: int
    batches: int = Field(description="In flight.")
    slots: int = Field(description="Batches that it polls at a time.")
    lent: int = Field(description="Batches beyond its slots, which only wait for slow devices.")
    rss_bytes: int
    tags: dict[str, str]
    collectors: dict[str, str] = Field(description="Package and version by name.")
    queues: list[str]
    spool_waiting: int = Field(description="Results on its disk, once for each store.")
    spool_dropped: int
    rate_limit: str
    store_error: str = Field(description="Why it cannot poll or write now; empty for no reason.")
    version: str = Field(description="Its release of poller; empty if it does not tell.")
    drain: DrainItem | None = Field(description="Null: it takes work.")
    unfinished: int = Field(
        description="Batches and jobs that it took and has not finished, waiting retries too."
    )


class DomainItem(BaseModel):
    """One queue: a collector and the tags that its targets require."""

    name: str
    collector: str
    requires: dict[str, str]
    is_served: bool = Field(description="Whether a running worker serves it.")
    reason: str = Field(description="Why no running worker serves it; empty if one does.")
    workers: list[str] = Field(description="The running workers that serve it.")
    targets_due: int
    targets_overdue: int
    batches_waiting: int
    needed_per_second: float = Field(description="Polls that its targets need.")
    done_per_second: float = Field(description="Polls of the last minute.")
    times_the_workers_needed: float | None = Field(
        description="0: the workers keep up; null: nothing is polled."
    )
    used_seconds: float = Field(
        description="Worker-seconds of the last minute: how long its batches held slots."
    )
    maximum_seconds: float = Field(
        description="Worker-seconds that the slots of its workers have in a minute. Domains share"
        " workers."
    )
    wait_p50_seconds: float | None = Field(
        description="Half of the polls of five minutes waited no longer for a worker; null: none."
    )
    wait_p95_seconds: float | None


def workers(view: Overview) -> list[WorkerItem]:
    """Return all workers, running ones first."""
    items = [_worker(worker, view) for worker in view.workers]
    items.sort(key=lambda item: (item.state != "running", item.name))
    return items


def domains(view: Overview, times: Mapping[str, QueueTimes]) -> list[DomainItem]:
    """Return all queues of the board, by name. `times` has their slot times and waits."""
    living = running_workers.running(view)
    labels = view.labels
    items = []
    for load in sorted(view.loads, key=lambda load: load.queue):
        serving = [worker for worker in living if load.queue in worker.queues]
        names = sorted(labels[worker.key] for worker in serving)
        slots = sum(worker.slots for worker in serving)
        reason = unroutable.reason(load.queue, living)
        items.append(_domain(load, names, slots, reason, times.get(load.queue, NO_TIMES)))
    return items


def _worker(worker: Worker, view: Overview) -> WorkerItem:
    last_poll_ms = view.as_of_ms - worker.polled_ms
    seen_ms = view.as_of_ms - worker.seen_ms
    return WorkerItem(
        name=view.labels[worker.key],
        state="running" if running_workers.is_running(worker, view) else "lost",
        pid=worker.pid or None,
        seen=instants.of_ms(worker.seen_ms),
        started=instants.of_ms(worker.started_ms),
        last_poll=instants.of_ms(worker.polled_ms),
        last_poll_seconds=last_poll_ms // 1000 if worker.polled_ms else None,
        seen_seconds=seen_ms // 1000,
        polls=worker.polls,
        batches=worker.in_flight,
        slots=worker.slots,
        lent=worker.lent,
        rss_bytes=worker.rss_bytes,
        tags=dict(sorted(worker.tags.items())),
        collectors=dict(sorted(worker.collectors.items())),
        queues=sorted(worker.queues),
        spool_waiting=worker.spool_waiting,
        spool_dropped=worker.spool_dropped,
        rate_limit=worker.rate_limit,
        store_error=worker.store_error,
        version=worker.version,
        drain=_drain(worker),
        unfinished=worker.unfinished,
    )


def _drain(worker: Worker) -> DrainItem | None:
    drain = worker.drain
    if drain is None:
        return None
    return DrainItem(
        since=instants.of_ms(drain.since_ms),
        until=instants.of_ms(drain.until_ms),
        by=drain.by,
        reason=drain.reason,
        is_done=worker_drain.is_drained(worker),
    )


def _domain(
    load: Load, workers_of_queue: list[str], slots: int, reason: str, times: QueueTimes
) -> DomainItem:
    is_canonical = queue_routing.is_canonical(load.queue)
    collector, requires = queue_routing.parse(load.queue) if is_canonical else (load.queue, {})
    return DomainItem(
        name=load.queue,
        collector=collector,
        requires=dict(requires),
        is_served=not reason,
        reason=reason,
        workers=workers_of_queue,
        targets_due=load.due,
        targets_overdue=load.overdue,
        batches_waiting=load.waiting,
        needed_per_second=load.needed_per_s,
        done_per_second=load.done_per_s,
        times_the_workers_needed=load.shortage,
        used_seconds=times.slot_ms / 1000,
        maximum_seconds=slots * MINUTE_S,
        wait_p50_seconds=_seconds(times.wait_ms(0.5)),
        wait_p95_seconds=_seconds(times.wait_ms(0.95)),
    )


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else round(ms / 1000, 3)
