"""Which collectors of this worker run in a child process, and which nowhere? What the cluster knows, looked at often.

A thread of its own reads and writes Redis; a batch only looks into a dictionary that is empty nearly always.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping
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
from poller.state.cluster import quarantine_records as store
from poller.state.cluster.quarantine_records import Release
from poller.workers.batch.event_loop import PollLoop
from poller.workers.batch.target_cache import CachedTarget
from poller.workers.guard.child.child_messages import Hello
from poller.workers.guard.child.child_supervisor import Keeper

log = logs.get(__name__)

LOOK_S = 2.0

#: How a target is polled that is not simply drained. Cancelled: nothing was found out.
Way = Callable[[PollTarget, Poll], Coroutine[Any, Any, Outcome]]
NO_WAYS: Mapping[str, Way] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Refusal:
    """The way of a quarantined collector: nothing is sent."""

    text: str

    async def poll(self, target: PollTarget, poll: Poll) -> Outcome:
        return Outcome(Result.REFUSED, error_codes.COLLECTOR_QUARANTINED, self.text)


class Detour:
    """A poll that goes such a way. `on_done` is called once, unless it is stopped before."""

    def __init__(
        self, work: Coroutine[Any, Any, Outcome], on_done: Callable[[Outcome | None], None]
    ) -> None:
        self._on_done = on_done
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Outcome]) -> None:
        if task.cancelled():
            self._on_done(None)
        elif (
            error := task.exception()
        ) is not None:  # ours; handed back, it would come again at once
            log.error("isolation_broke", exc_info=error)
            self._on_done(
                from_error(
                    errors.CollectorCrashed("it cannot be polled in a child", type(error).__name__)
                )
            )
        else:
            self._on_done(task.result())

    def stop(self) -> None:
        self._task.remove_done_callback(self._ended)
        self._task.cancel()


class Isolation:
    """One per worker process; safe for threads."""

    def __init__(self, services: Services, runtime: PollLoop) -> None:
        settings = services.settings
        self._services = services
        self._runtime = runtime
        self._rules = quarantine.Rules(
            settings.quarantine_crashes, round(settings.quarantine_window_s * 1000)
        )
        self._releases = {
            name: Release(name, origin) for name, origin in services.registry.distributions.items()
        }
        self._declared = declared(services)
        self._keepers: dict[str, Keeper] = {}
        self._ways: dict[str, Way] = {}
        self._refused: frozenset[str] = frozenset()
        self._untold: queue.SimpleQueue[tuple[str, Incident]] = queue.SimpleQueue()
        self._doubted: set[str] = set()  # by ourselves; the cluster may not know yet
        self._closed = False
        self._wake = threading.Event()
        self._guard = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def ways(self, known: Collection[CachedTarget]) -> Mapping[str, Way]:
        """By collector, for a batch of these targets. What would be refused is asked for again: it may be released."""
        if self._thread is None:
            self._begin()
        if self._refused and any(each.target.collector in self._refused for each in known):
            self.look()
        return self._ways

    def _begin(self) -> None:
        """The first batches wait until it is known what must not be run here."""
        with self._starting:
            if self._thread is None:
                self.look()
                thread = threading.Thread(target=self._watch, name="isolation", daemon=True)
                thread.start()
                self._thread = thread

    def _watch(self) -> None:
        while not self._closed:
            self._wake.wait(LOOK_S)
            self._wake.clear()
            self._tell()
            self.look()

    def _tell(self) -> None:
        """What happened here; if Redis is away, later."""
        while True:
            try:
                name, doubt = self._untold.get_nowait()
            except queue.Empty:
                return
            try:
                self.record(self._releases[name], doubt)
            except errors.StoreError as error:
                log.warning("crash_not_counted_yet", collector=name, error=str(error))
                self._untold.put((name, doubt))
                return
            self._doubted.discard(name)

    def look(self) -> None:
        """What the cluster knows by now. Never raises; what cannot be read stays as it was."""
        try:
            found = store.read(self._services.redis, self._services.keys)
        except errors.StoreError as error:
            log.warning("quarantine_not_read", error=str(error))
            found = {}
            if self._ways:
                return
        with self._guard:
            if not self._closed:
                self._apply(found)

    def _apply(self, found: Mapping[Release, Record]) -> None:
        ways: dict[str, Way] = {}
        refused = set()
        for name, release in self._releases.items():
            record = found.get(release, Record())
            if record.trust is Trust.QUARANTINED:
                ways[name] = Refusal(f"{release} is quarantined: {record.reason}").poll
                refused.add(name)
            elif record.trust is Trust.ISOLATED or name in self._declared or name in self._doubted:
                ways[name] = self._keeper(name).poll
        self._ways, self._refused = ways, frozenset(refused)
        self._dismiss([name for name in self._keepers if name not in ways or name in refused])

    def _keeper(self, name: str) -> Keeper:
        if name not in self._keepers:
            settings = self._services.settings
            hello = Hello(
                collector=name,
                memory_mb=settings.isolation_memory_mb,
                threads=settings.blocking_threads,
                stuck=settings.stuck_threads,
                targets=settings.target_cache,
                session=asdict(policies.session_rules(settings).of(name)),
                sessions=settings.sessions,
                log_level=settings.log_level,
                log_format=settings.log_format,
            )
            self._keepers[name] = Keeper(str(self._releases[name]), hello, self._crashed(name))
        return self._keepers[name]

    def _crashed(self, name: str) -> Callable[[str, tuple[PollTarget, ...]], None]:
        def crashed(text: str, polled: tuple[PollTarget, ...]) -> None:
            names = ", ".join(f"{target.device}/{target.name}" for target in polled)
            self._doubt(name, Cause.CRASH, f"{text}, while it polled {names}" if names else text)

        return crashed

    def overrun(self, name: str) -> None:
        """Its threads hang beyond the limit: from now on they do so in another process."""
        if name in self._releases:
            self._doubted.add(name)
            count = self._services.settings.stuck_threads
            self._doubt(name, Cause.STUCK, f"{count} of its threads hang in one worker")

    def _doubt(self, name: str, cause: Cause, text: str) -> None:
        self._untold.put((name, Incident(event_publisher.now_ms(), cause, text)))
        self._wake.set()

    def record(self, release: Release, doubt: Incident) -> None:
        """Tell the cluster, and people if that changes how the collector is run. Raises StoreError.

        It may be one that is not installed here: another worker of this host died of it.
        """
        doubt = replace(doubt, text=self._services.redactor.text(doubt.text))
        before, after = store.record(
            self._services.redis, self._services.keys, release, doubt, self._rules
        )
        if after.trust is not before.trust:
            self._wake.set()
            event_publisher.emit(
                self._services, [_event(release, after, doubt, release.collector in self._declared)]
            )

    def close(self) -> None:
        with self._guard:
            self._closed = True
            self._ways = {}
            self._dismiss(list(self._keepers))

    def _dismiss(self, names: Collection[str]) -> None:
        for name in names:
            self._runtime.loop.call_soon_threadsafe(self._keepers.pop(name).close)


def declared(services: Services) -> frozenset[str]:
    """Collectors whose author or operator wants them in a process of their own."""
    by_author = {
        name
        for name, each in services.registry.collectors.items()
        if getattr(each, "isolated", False)
    }
    by_operator = set(services.settings.isolated_collectors)
    for name in sorted(by_operator - services.registry.collectors.keys()):
        log.warning(
            "isolated_collector_not_installed", collector=name, setting="isolated_collectors"
        )
    return frozenset(by_author | by_operator)


def _event(release: Release, after: Record, doubt: Incident, was_isolated: bool) -> Event:
    data = {
        "collector": release.collector,
        "distribution": release.distribution,
        "crashes": len(after.crashes_ms),
    }
    if after.trust is Trust.QUARANTINED:
        text = f"{release} is quarantined after {len(after.crashes_ms)} crashes: {after.reason}"
        return Event(doubt.at_ms, Kind.COLLECTOR_QUARANTINED, text, data=data)
    text = f"{release} runs in a process of its own {'as before' if was_isolated else 'from now on'}: {after.reason}"
    return Event(doubt.at_ms, Kind.COLLECTOR_ISOLATED, text, data=data)
