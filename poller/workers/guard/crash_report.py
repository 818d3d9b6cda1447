"""Why did a worker of this host die? What it was collecting is read from its black box, and said by name.

Only the target whose code ran at that moment gets an outcome here; the leases bring back everybody else.
"""

from __future__ import annotations

import threading
from collections import Counter

from poller import errors, event_publisher
from poller.bootstrap import Services
from poller.db.inventory import inventory_feed
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.failures.quarantine import Cause, Incident
from poller.domain.record.event_kinds import Event, Kind
from poller.observability import logs
from poller.state.cluster.quarantine_records import Release
from poller.workers.batch.worker_poller import Poller
from poller.workers.guard import black_box, marks
from poller.workers.guard.black_box import Wreck

log = logs.get(__name__)

LOOK_S = 2.0


class Aftermath:
    def __init__(self, services: Services, poller: Poller) -> None:
        self._services = services
        self._poller = poller

    def look(self) -> None:
        """Never raises; what cannot be said now is said at the next look."""
        try:
            black_box.open_wrecks(self._services.settings.home, self._explain)
        except (errors.StoreError, OSError) as error:
            log.warning("dead_worker_not_explained_yet", error=str(error))
        except Exception:
            log.exception("dead_workers_not_found")

    def keep_looking(self, stopping: threading.Event) -> None:
        """In a thread of its own: a database that does not answer must not keep the heartbeat waiting."""
        while not stopping.wait(LOOK_S):
            self.look()

    def _explain(self, wreck: Wreck) -> None:
        try:
            self._say(wreck)
        except errors.StoreError:
            raise
        except Exception:  # one that nobody can explain must not hide the next
            log.exception("dead_worker_not_explained", worker=wreck.worker)

    def _say(self, wreck: Wreck) -> None:
        if wreck.flight is not None:
            release = self._release(wreck, wreck.flight.collector)
            text = f"{wreck.worker} died while {_named(release)} ran{_at(wreck)}"
            outcome = Outcome(Result.FAILED, error_codes.WORKER_DIED, text)
            self._poller.conclude(
                wreck.flight.token, wreck.flight.attempt, wreck.target_id, outcome
            )
            if release.distribution:
                self._poller.isolation.record(release, self._doubt(wreck, text))
        if wreck.fault:
            log.error("worker_fault", worker=wreck.worker, trace=wreck.fault)
        if wreck.flights or wreck.target_id:
            event_publisher.emit(self._services, [self._event(wreck)])

    def _doubt(self, wreck: Wreck, text: str) -> Incident:
        """Without a fault it may have been killed from outside, or for want of memory: that proves nothing yet."""
        cause = Cause.CRASH if wreck.fault else Cause.SUSPICION
        return Incident(event_publisher.now_ms(), cause, text, wreck.target_id)

    def _event(self, wreck: Wreck) -> Event:
        """Whose code ran, if anybody's did, and how much was under way."""
        under_way: Counter[str] = Counter()
        for flight in wreck.flights:
            under_way[flight.collector] += flight.targets
        told = ", ".join(
            f"{many} with {_named(self._release(wreck, name))}" for name, many in under_way.items()
        )
        data = {"worker": wreck.worker, "under_way": dict(under_way)}
        culprit = inventory_feed.poll_targets(self._services.engine, [wreck.target_id]).get(
            wreck.target_id
        )
        if culprit is None:
            text = f"{wreck.worker} died while it polled targets: {told}"
            return Event(event_publisher.now_ms(), Kind.WORKER_LOST, text, data=data)
        named = _named(self._release(wreck, culprit.collector))
        text = f"{wreck.worker} died while {named} polled {culprit.device}/{culprit.name}"
        return Event(
            at_ms=event_publisher.now_ms(),
            kind=Kind.WORKER_LOST,
            message=f"{text}; under way were {told or 'no others'}",
            device=culprit.device,
            target=culprit.name,
            target_id=culprit.id,
            device_id=culprit.device_id,
            data={**data, "collector": culprit.collector},
        )

    def _release(self, wreck: Wreck, collector: str) -> Release:
        """As the dead worker had it: here it may be older, newer or missing."""
        ours = self._services.registry.distributions
        return Release(collector, wreck.releases.get(collector) or ours.get(collector, ""))


def _named(release: Release) -> str:
    """With the distribution it comes from: that is what one updates or removes."""
    return str(release) if release.distribution else f"collector {release.collector}"


def _at(wreck: Wreck) -> str:
    where = marks.place(wreck.fault)
    return f", with a fault at {where}" if where else ""
