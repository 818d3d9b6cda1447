"""The report about a dead worker of this host: which collector's code ran when it died, by name.

The record comes from the dead worker's black box. Only the target whose code ran gets an outcome
here; the leases bring back all other targets. While a job ran, too, only a fault in the collector's
own thread is proof against the collector.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import Any

from poller import errors, event_publisher
from poller.bootstrap import Services
from poller.db.inventory import inventory_feed
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.failures.quarantine import Cause, Incident
from poller.domain.record.event_kinds import Event, Kind
from poller.observability import logs
from poller.state.cluster import event_stream
from poller.state.cluster.quarantine_records import Release
from poller.workers.batch.worker_poller import Poller
from poller.workers.guard import black_box, running_code
from poller.workers.guard.black_box import CrashRecord, RunningBatch

log = logs.get(__name__)

CHECK_S = 2.0
#: The stack of a fault in a job's handler contains this file.
_HANDLER_FILE = "handler_call.py"


class CrashReporter:
    def __init__(self, services: Services, poller: Poller) -> None:
        self._services = services
        self._poller = poller

    def run(self, stopping: threading.Event) -> None:
        """Check until `stopping` is set. Needs a thread of its own: SQL may hang."""
        while not stopping.wait(CHECK_S):
            self.check()

    def check(self) -> None:
        """Report the dead workers of this host.

        Never raises; a report that fails is tried at the next check.
        """
        try:
            black_box.read_crashes(self._services.settings.home, self._try_report)
        except (errors.StoreError, OSError) as error:
            log.warning("dead_worker_not_explained_yet", error=str(error))
        except Exception:  # door: the end of this thread; it must not die
            log.exception("dead_workers_not_found")

    def _try_report(self, record: CrashRecord) -> None:
        try:
            self._report(record)
        except errors.StoreError:
            raise
        except Exception:  # door: a file of a dead process; it must not hide the next one
            log.exception("dead_worker_not_explained", worker=record.worker)

    def _report(self, record: CrashRecord) -> None:
        if record.batch is not None and not _may_be_a_jobs_fault(record):
            self._blame(record, record.batch)
        if record.fault:
            log.error("worker_fault", worker=record.worker, trace=record.fault)
        if record.batches or record.target_id or record.jobs:
            self._emit(self._event(record), record.worker)

    def _emit(self, event: Event, worker: str) -> None:
        """Emit the event. If the leader has noticed the loss before, the event explains it: one
        lost worker is one `worker_lost`.
        """
        if event_stream.is_lost(self._services.redis, self._services.keys, worker):
            event = replace(event, kind=Kind.WORKER_DEATH_EXPLAINED)
        event_publisher.emit(self._services, [event])

    def _blame(self, record: CrashRecord, batch: RunningBatch) -> None:
        """Give the target whose code ran an outcome, and record an incident of its collector."""
        release = self._release(record, batch.collector)
        text = f"{record.worker} died while {_name(release)} ran"
        location = running_code.fault_location(record.fault)
        if location:
            text = f"{text}, with a fault at {location}"

        outcome = Outcome(Result.FAILED, error_codes.WORKER_DIED, text)
        self._poller.conclude(batch.token, batch.attempt, record.target_id, outcome)

        if release.distribution:
            # Without a fault the worker may have been killed, or was out of memory: no proof yet.
            cause = Cause.CRASH if record.fault else Cause.SUSPICION
            incident = Incident(event_publisher.now_ms(), cause, text, record.target_id)
            self._poller.isolation.record(release, incident)

    def _event(self, record: CrashRecord) -> Event:
        """Return the event: the target whose code ran, if any, and the running polls."""
        running: Counter[str] = Counter()
        for batch in record.batches:
            running[batch.collector] += batch.targets

        counts = []
        for collector, targets in running.items():
            release = self._release(record, collector)
            counts.append(f"{targets} with {_name(release)}")
        summary = ", ".join(counts)

        data = {"worker": record.worker, "under_way": dict(running), "jobs": list(record.jobs)}
        if _may_be_a_jobs_fault(record):
            return self._job_event(record, summary, data)
        targets_by_id = inventory_feed.poll_targets(self._services.engine, [record.target_id])
        target = targets_by_id.get(record.target_id)
        if target is None:
            text = f"{record.worker} died while it polled targets: {summary}"
            return Event(event_publisher.now_ms(), Kind.WORKER_LOST, text, data=data)

        name = _name(self._release(record, target.collector))
        text = f"{record.worker} died while {name} polled {target.device}/{target.name}"
        return Event(
            at_ms=event_publisher.now_ms(),
            kind=Kind.WORKER_LOST,
            message=f"{text}; under way were {summary or 'no others'}",
            device=target.device,
            target=target.name,
            target_id=target.id,
            device_id=target.device_id,
            data={**data, "collector": target.collector},
        )

    def _job_event(self, record: CrashRecord, summary: str, data: dict[str, Any]) -> Event:
        """Return the event of a worker that died while jobs ran."""
        word = "job" if len(record.jobs) == 1 else "jobs"
        text = f"{record.worker} died while {word} {', '.join(record.jobs)} ran"
        location = running_code.fault_location(record.fault)
        if location:
            text = f"{text}, with a fault at {location}"
        message = f"{text}; polls under way were {summary or 'none'}"
        return Event(event_publisher.now_ms(), Kind.WORKER_LOST, message, data=data)

    def _release(self, record: CrashRecord, collector: str) -> Release:
        """Return the dead worker's release: this worker's may be older, newer or missing."""
        distribution = record.releases.get(collector)
        if not distribution:
            own = self._services.registry.distributions
            distribution = own.get(collector, "")
        return Release(collector, distribution)


def _may_be_a_jobs_fault(record: CrashRecord) -> bool:
    """Whether a job may have ended the process: one ran, and no stack shows other code."""
    return bool(record.jobs) and (not record.fault or _HANDLER_FILE in record.fault)


def _name(release: Release) -> str:
    """Return the collector with its distribution: a person updates or removes the distribution."""
    return str(release) if release.distribution else f"collector {release.collector}"
