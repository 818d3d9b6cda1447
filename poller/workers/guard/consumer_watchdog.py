"""The watchdog of the Celery consumer, which may silently stop to take batches.

A check is bad when Redis answers and Celery's hub does not, or when batches wait, the pool has
room and the consumer takes none. After enough bad checks in a row the consumer is restarted; if
that changes nothing, the process has to end. Checks are counted, not seconds: a paused process
makes no checks.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from celery.concurrency import solo
from celery.worker import state

from poller import errors, event_publisher
from poller.bootstrap import Services
from poller.domain.record.event_kinds import Event, Kind

CHECK_S = 2.0
BAD_CHECKS = 6
#: The counter of all stalls of all workers, among the totals of the board.
STALLS_TOTAL = "worker_stalls"


class StallEvents:
    """Emits the event of a stalled worker and counts it. The loop's watchdog uses it too."""

    def __init__(self, services: Services, worker: str) -> None:
        self._services = services
        self._worker = worker

    def emit(self, reason: str, consequence: str) -> None:
        """Emit one event.

        Never raises: a process that has to end does so while Redis is away, too.
        """
        event = Event(
            at_ms=event_publisher.now_ms(),
            kind=Kind.WORKER_STALLED,
            message=f"{self._worker}: {reason}; {consequence}",
            data={"worker": self._worker, "why": reason},
        )
        event_publisher.emit(self._services, [event])
        with suppress(errors.StoreError):
            self._services.board.count({STALLS_TOTAL: 1})


class Fault(enum.StrEnum):
    HUB = "its main loop does not answer"
    INTAKE = "it takes no batches although some wait and it has room"


class Cure(enum.StrEnum):
    RESTART = "its consumer is started again"
    END = "the process ends"


@dataclass(slots=True)
class Diagnosis:
    """Counts bad checks in a row and chooses the cure."""

    bad_checks: int = 0
    is_restarted: bool = False

    def after(self, fault: Fault | None) -> Cure | None:
        if fault is None:
            self.bad_checks = 0
            self.is_restarted = False
            return None

        self.bad_checks += 1
        if self.bad_checks < BAD_CHECKS:
            return None

        self.bad_checks = 0
        if fault is Fault.HUB or self.is_restarted:
            return Cure.END
        self.is_restarted = True
        return Cure.RESTART


class ConsumerWatchdog:
    """Watches the consumer of this process. `count_waiting` counts the batches in its queues."""

    def __init__(
        self, consumer: Any, count_waiting: Callable[[], int], events: StallEvents
    ) -> None:
        self._consumer = consumer
        self._count_waiting = count_waiting
        self._events = events
        self._has_answered = True
        self._taken = 0
        self._diagnosis = Diagnosis()

    def watch(self, stopping: threading.Event) -> bool:
        """Check the consumer until the process has to end (True) or `stopping` is set (False)."""
        while not stopping.is_set():
            self._ping_hub()
            stopping.wait(CHECK_S)

            fault = self._check()
            cure = self._diagnosis.after(fault)
            if fault is None or cure is None or stopping.is_set():
                continue

            self._events.emit(fault.value, cure.value)
            if cure is Cure.END:
                return True
            self._consumer.hub.call_soon(_drop_connection)
        return False

    def _ping_hub(self) -> None:
        """Ask at each check: a connection that breaks makes Celery's hub drop calls that wait."""
        self._has_answered = False
        self._consumer.hub.call_soon(self._pong)

    def _pong(self) -> None:
        self._has_answered = True

    def _check(self) -> Fault | None:
        taken = state.all_total_count[0]
        has_taken = taken != self._taken
        self._taken = taken

        is_silent = not self._has_answered and not self._is_polling_solo()
        if has_taken and not is_silent:
            return None
        try:
            waiting = self._count_waiting()
        except errors.StoreError:
            return None  # Redis is away: the consumer reconnects

        if is_silent:
            return Fault.HUB
        return Fault.INTAKE if waiting and self._has_room() else None

    def _is_polling_solo(self) -> bool:
        """The solo pool polls in the hub's own thread: the hub cannot answer while it polls."""
        is_solo = isinstance(self._consumer.pool, solo.TaskPool)
        return is_solo and bool(state.active_requests)

    def _has_room(self) -> bool:
        """Whether the pool has a free slot."""
        slots = int(self._consumer.pool.num_processes)
        return len(state.reserved_requests) < slots


def unstarted_batches() -> list[tuple[Any, ...]]:
    """Return the arguments of polls that this process took from the broker and did not start."""
    batches = []
    requests = tuple(state.requests.values())
    for request in requests:
        is_started = request in state.active_requests
        if request.name == "poller.poll" and not is_started:
            batches.append(tuple(request.args))
    return batches


def _drop_connection() -> None:
    """Raise on Celery's hub, which then closes its connection and opens a new one."""
    raise ConnectionResetError("the consumer stood still: starting it again")
