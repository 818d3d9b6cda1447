"""The overview as JSON, schema `poller.overview/1`. Fields may be added, never changed. Instants
are UTC, and the names of numbers end with their unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.record.overview import LastError, Load, Overview, Point, Worker
from poller.presentation import event_json, formatting, job_json, running_workers
from poller.presentation.alerts import alert_json
from poller.presentation.cluster import sinks_json
from poller.presentation.health import Health
from poller.presentation.job_states import ListedJob

SCHEMA = "poller.overview/1"
#: The last changes that the document has; `/api/v1/events` has all.
EVENTS = 10


def document(
    overview: Overview,
    verdict: Health,
    jobs: Sequence[ListedJob] = (),
    alerts: AlertNumbers | None = None,
) -> dict[str, Any]:
    """Return the document of an overview, the verdict on it, and jobs and alerts in short."""
    states = {state.value: number for state, number in overview.states.items()}
    return {
        "schema": SCHEMA,
        "as_of": formatting.instant(overview.as_of_ms),
        "health": _health(verdict),
        "targets": {"total": overview.targets, "states": states},
        "board": {
            "due": overview.due,
            "overdue": overview.overdue,
            "long_overdue": overview.long_overdue,
            "in_flight": overview.in_flight,
            "not_started": overview.unstarted,
            "parked": overview.parked,
            "held": overview.held,
        },
        "alerts": alert_json.numbers(alerts),
        "breakers": {"open": overview.breakers_open, "opened_by_hand": overview.opened_by_hand},
        "dead_letters": dict(overview.dead_letters),
        "polls_per_second": overview.polls_per_second,
        "outcomes_last_5_min": dict(overview.outcomes),
        "lateness_last_5_min": _lateness(overview),
        "recent": [_point(point) for point in overview.recent],
        "unserved": _unserved(overview),
        "queues": [_load(load) for load in overview.loads],
        "leader": _leader(overview),
        "standbys": overview.standbys,
        "workers": [_worker(worker) for worker in overview.workers],
        "errors": [_error(error) for error in overview.errors],
        "events": [event_json.item(event) for event in overview.events[:EVENTS]],
        "totals": dict(overview.totals),
        "jobs": job_json.jsonable(job_json.attention(jobs)),
        "sinks": {
            name: each.model_dump(mode="json")
            for name, each in sinks_json.summary(overview).items()
        },
    }


def _health(verdict: Health) -> dict[str, Any]:
    return {
        "state": verdict.tone.value,
        "level": verdict.level.value,
        "text": verdict.text,
        "reasons": list(verdict.reasons),
        "ready": verdict.is_ready,
    }


def _lateness(overview: Overview) -> dict[str, Any]:
    lateness = overview.lateness
    if not lateness.count:
        return {"polls": 0, "p50_s": None, "p99_s": None, "max_s": None}
    return {
        "polls": lateness.count,
        "p50_s": lateness.p50_ms / 1000,
        "p99_s": lateness.p99_ms / 1000,
        "max_s": lateness.max_ms / 1000,
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "at": formatting.instant(point.at_ms),
        "duration_s": point.seconds,
        "polls": point.polls,
        "failed": point.failed,
        "lateness_p99_s": point.lateness_p99_ms / 1000 if point.polls else None,
    }


def _leader(overview: Overview) -> dict[str, Any] | None:
    leader = overview.leader
    if leader is None:
        return None
    return {
        "name": leader.name,
        "epoch": leader.epoch,
        "since": formatting.instant(leader.since_ms),
    }


def _unserved(overview: Overview) -> list[dict[str, Any]]:
    """The queues that no running worker serves, by name."""
    queues = sorted(running_workers.unroutable(overview), key=lambda each: each.queue)
    items = []
    for each in queues:
        items.append({"name": each.queue, "targets": each.targets, "reason": each.reason})
    return items


def _load(load: Load) -> dict[str, Any]:
    return {
        "name": load.queue,
        "targets_due": load.due,
        "targets_overdue": load.overdue,
        "batches_waiting": load.waiting,
        "needed_per_second": load.needed_per_s,
        "done_per_second": load.done_per_s,
        "workers": load.workers,
        "times_the_workers_needed": load.shortage,
    }


def _worker(worker: Worker) -> dict[str, Any]:
    return {
        "name": worker.name,
        "instance": worker.instance,
        "seen": formatting.instant(worker.seen_ms),
        "started": formatting.instant(worker.started_ms),
        "polls": worker.polls,
        "last_poll": formatting.instant(worker.polled_ms) if worker.polled_ms else None,
        "in_flight": worker.in_flight,
        "slots": worker.slots,
        "lent": worker.lent,
        "rate_limit": worker.rate_limit,
        "store_error": worker.store_error,
        "memory_bytes": worker.rss_bytes,
        "tags": dict(worker.tags),
        "collectors": dict(worker.collectors),
        "queues": list(worker.queues),
    }


def _error(error: LastError) -> dict[str, Any]:
    return {
        "at": formatting.instant(error.at_ms),
        "target_id": error.target_id,
        "device": error.device,
        "target": error.target,
        "code": error.code,
        "message": error.message,
    }
