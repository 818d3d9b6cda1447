"""Which collectors of this worker run in a child process, and which are quarantined.

A thread of its own reads and writes the cluster's quarantine records in Redis. A batch only looks
up a dictionary, which is nearly always empty.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from poller import errors, event_publisher
from poller.bootstrap import Services
from poller.collectors.api import Poll
from poller.domain.failures import error_codes, quarantine
from poller.domain.failures.outcome import Outcome, Result, from_error
from poller.domain.failures.quarantine import Cause, Incident, Record, Trust
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.record.event_kinds import Event, Kind
from poller.observability import logs
from poller.settings import policies
from poller.state.cluster import quarantine_records
from poller.state.cluster.quarantine_records import Release
from poller.workers.batch.event_loop import PollLoop
from poller.workers.guard.child.child_messages import ChildConfig
from poller.workers.guard.child.child_supervisor import ChildSupervisor
from poller.workers.guard.collector_incidents import CollectorIncidents

log = logs.get(__name__)

REFRESH_S = 2.0

#: A coroutine function that polls a target instead of its collector. A cancelled poll has no
#: outcome.
PollOverride = Callable[[PollTarget, Poll], Coroutine[Any, Any, Outcome]]
NO_OVERRIDES: Mapping[str, PollOverride] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Refusal:
    """The override of a quarantined collector: nothing is sent to the device."""

    text: str

    async def poll(self, target: PollTarget, poll: Poll) -> Outcome:
        return Outcome(Result.REFUSED, error_codes.COLLECTOR_QUARANTINED, self.text)


class OverriddenPoll:
    """A running poll of an override.

    `on_done` is called once with its outcome, unless `stop` is called first.
    """

    def __init__(
        self, work: Coroutine[Any, Any, Outcome], on_done: Callable[[Outcome | None], None]
    ) -> None:
        self._on_done = on_done
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[Outcome]) -> None:
        if task.cancelled():
            self._on_done(None)
            return
        error = task.exception()
        if error is None:
            self._on_done(task.result())
            return

        # A bug of the platform. Without an outcome the target would be due again at once.
        log.error("isolation_broke", exc_info=error)
        crash = errors.CollectorCrashed("it cannot be polled in a child", type(error).__name__)
        self._on_done(from_error(crash))

    def stop(self) -> None:
        self._task.remove_done_callback(self._finish)
        self._task.cancel()


class Isolation:
    """One per worker process, safe for threads."""

    def __init__(
        self, services: Services, poll_loop: PollLoop, incidents: CollectorIncidents
    ) -> None:
        settings = services.settings
        self._services = services
        self._poll_loop = poll_loop
        self._incidents = incidents

        window_ms = round(settings.quarantine_window_s * 1000)
        self._rules = quarantine.Rules(settings.quarantine_crashes, window_ms)
        distributions = services.registry.distributions
        self._releases = {name: Release(name, origin) for name, origin in distributions.items()}
        self._declared = declared_isolated(services)

        self._supervisors: dict[str, ChildSupervisor] = {}
        self._overrides: dict[str, PollOverride] = {}
        self._quarantined: frozenset[str] = frozenset()
        self._stuck: set[str] = set()  # collectors whose incident is not stored yet

        self._is_closed = False
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def overrides(self, collectors: Iterable[str]) -> Mapping[str, PollOverride]:
        """Return the overrides by collector, for a batch whose targets use these collectors.

        A quarantined collector among them causes a refresh: a person may have released it.
        """
        if self._thread is None:
            self._start()
        if self._quarantined and not self._quarantined.isdisjoint(collectors):
            self.refresh()
        return self._overrides

    def _start(self) -> None:
        """Refresh before the first batch is polled: it must not run a quarantined collector."""
        with self._starting:
            if self._thread is None:
                self.refresh()
                thread = threading.Thread(target=self._run, name="isolation", daemon=True)
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        while not self._is_closed:
            self._incidents.changed.wait(REFRESH_S)
            self._incidents.changed.clear()
            self._store_incidents()
            self.refresh()

    def _store_incidents(self) -> None:
        """Store the incidents of this process in the cluster's records; later, if Redis is away."""
        while True:
            collected = self._incidents.take()
            if collected is None:
                return
            collector = collected.collector
            release = self._releases.get(collector)
            if release is None:
                continue  # a thread of the platform, not of a collector
            try:
                self.record(release, collected.incident)
            except errors.StoreError as error:
                log.warning("crash_not_counted_yet", collector=collector, error=str(error))
                if collected.incident.cause is Cause.STUCK:
                    self._stuck.add(collector)
                self._incidents.put(collected)
                return
            self._stuck.discard(collector)

    def refresh(self) -> None:
        """Read the cluster's records. Never raises; while Redis is away the last overrides stay."""
        records: Mapping[Release, Record] = {}
        try:
            records = quarantine_records.read(self._services.redis, self._services.keys)
        except errors.StoreError as error:
            log.warning("quarantine_not_read", error=str(error))
            if self._overrides:
                return
        with self._lock:
            if not self._is_closed:
                self._apply(records)

    def _apply(self, records: Mapping[Release, Record]) -> None:
        overrides: dict[str, PollOverride] = {}
        quarantined = set()
        for name, release in self._releases.items():
            record = records.get(release, Record())
            if record.trust is Trust.QUARANTINED:
                quarantined.add(name)
                refusal = Refusal(f"{release} is quarantined: {record.reason}")
                overrides[name] = refusal.poll
            elif self._is_isolated(name, record):
                overrides[name] = self._supervisor(name).poll

        self._overrides = overrides
        self._quarantined = frozenset(quarantined)
        isolated = overrides.keys() - quarantined
        self._close_supervisors(self._supervisors.keys() - isolated)

    def _is_isolated(self, name: str, record: Record) -> bool:
        if name in self._declared or name in self._stuck:
            return True
        return record.trust is Trust.ISOLATED

    def _supervisor(self, name: str) -> ChildSupervisor:
        if name not in self._supervisors:
            settings = self._services.settings
            config = ChildConfig(
                collector=name,
                memory_mb=settings.isolation_memory_mb,
                threads=settings.blocking_threads,
                stuck=settings.stuck_threads,
                targets=settings.target_cache,
                session=asdict(policies.session_rules(settings).for_collector(name)),
                sessions=settings.sessions,
                log_level=settings.log_level,
                log_format=settings.log_format,
            )
            release = str(self._releases[name])
            self._supervisors[name] = ChildSupervisor(release, config, self._incidents)
        return self._supervisors[name]

    def record(self, release: Release, incident: Incident) -> None:
        """Store an incident, and emit an event if it changes how the collector is run.

        Raises StoreError.

        The release may be missing in this worker: it may have ended another worker of the host.
        """
        text = self._services.redactor.text(incident.text)
        incident = replace(incident, text=text)
        before, after = quarantine_records.record(
            self._services.redis, self._services.keys, release, incident, self._rules
        )
        if after.trust is before.trust:
            return

        self._incidents.changed.set()  # refresh at once
        was_isolated = release.collector in self._declared
        event_publisher.emit(self._services, [_event(release, after, incident, was_isolated)])

    def close(self) -> None:
        """Close the children. Polls of isolated collectors have no outcome from now on."""
        with self._lock:
            self._is_closed = True
            self._overrides = {}
            self._close_supervisors(set(self._supervisors))

    def _close_supervisors(self, names: Collection[str]) -> None:
        for name in names:
            supervisor = self._supervisors.pop(name)
            self._poll_loop.loop.call_soon_threadsafe(supervisor.close)


def declared_isolated(services: Services) -> frozenset[str]:
    """Return the collectors that their author or the operator wants in a child process."""
    collectors = services.registry.collectors
    by_author = {name for name, each in collectors.items() if getattr(each, "isolated", False)}

    by_operator = set(services.settings.isolated_collectors)
    for name in sorted(by_operator - collectors.keys()):
        log.warning(
            "isolated_collector_not_installed", collector=name, setting="isolated_collectors"
        )
    return frozenset(by_author | by_operator)


def _event(release: Release, after: Record, incident: Incident, was_isolated: bool) -> Event:
    crashes = len(after.crashes_ms)
    data = {
        "collector": release.collector,
        "distribution": release.distribution,
        "crashes": crashes,
    }
    if after.trust is Trust.QUARANTINED:
        text = f"{release} is quarantined after {crashes} crashes: {after.reason}"
        return Event(incident.at_ms, Kind.COLLECTOR_QUARANTINED, text, data=data)

    since = "as before" if was_isolated else "from now on"
    text = f"{release} runs in a process of its own {since}: {after.reason}"
    return Event(incident.at_ms, Kind.COLLECTOR_ISOLATED, text, data=data)
