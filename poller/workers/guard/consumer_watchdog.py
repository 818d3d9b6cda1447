"""Does this worker still take batches? After a broker reset a consumer may stand still for good, and say nothing.

A look counts when Redis answers us and Celery's own loop does not, or when batches wait, slots are free and none was
taken. Enough of these in a row: the consumer is started again; if that does not help, the process ends for whoever
supervises it. Looks are counted, not seconds: a process that was paused does not look either.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from celery.worker import state

from poller import errors
from poller.workers.process import pool_choice

LOOK_S = 2.0
LOOKS = 6


class Fault(enum.StrEnum):
    HUB = "its main loop does not answer"
    INTAKE = "it takes no batches although some wait and it has room"


class Cure(enum.Enum):
    RESTART = enum.auto()
    END = enum.auto()


@dataclass(slots=True)
class Diagnosis:
    """What to do after so many bad looks in a row."""

    bad: int = 0
    restarted: bool = False

    def after(self, fault: Fault | None) -> Cure | None:
        if fault is None:
            self.bad, self.restarted = 0, False
            return None
        self.bad += 1
        if self.bad < LOOKS:
            return None
        self.bad = 0
        if fault is Fault.HUB or self.restarted:
            return Cure.END
        self.restarted = True
        return Cure.RESTART


class Intake:
    """Watches the consumer of this process. `waiting` tells how many batches wait for it, and raises StoreError."""

    def __init__(
        self,
        consumer: Any,
        waiting: Callable[[], int],
        tell: Callable[[Fault, Cure], None],
        end: Callable[[], None],
    ) -> None:
        self._consumer = consumer
        self._waiting = waiting
        self._tell = tell
        self._end = end
        self._answered = True
        self._taken = 0
        self._diagnosis = Diagnosis()

    def start(self, stopping: Callable[[], bool]) -> None:
        threading.Thread(target=self._watch, args=(stopping,), name="intake", daemon=True).start()

    def _watch(self, stopping: Callable[[], bool]) -> None:
        while not stopping():
            self._ask()
            time.sleep(LOOK_S)
            fault = self._look()
            cure = self._diagnosis.after(fault)
            if fault is not None and cure is not None and not stopping():
                self._treat(fault, cure)

    def _ask(self) -> None:
        """Each time anew: a connection that breaks in one of its calls makes Celery's loop forget the others."""
        self._answered = False
        self._consumer.hub.call_soon(self._answer)

    def _answer(self) -> None:
        self._answered = True

    def _look(self) -> Fault | None:
        taken, before = state.all_total_count[0], self._taken
        self._taken = taken
        silent = not self._answered and not self._polls_itself()
        if not silent and taken != before:
            return None
        try:
            waiting = self._waiting()
        except errors.StoreError:
            return None  # reconnecting, as everybody is
        if silent:
            return Fault.HUB
        return Fault.INTAKE if waiting and self._has_room() else None

    def _polls_itself(self) -> bool:
        """`solo` has no other thread than Celery's own: while it polls, nobody else can."""
        return pool_choice.is_solo(type(self._consumer.pool)) and bool(state.active_requests)

    def _has_room(self) -> bool:
        return bool(len(state.reserved_requests) < self._consumer.pool.num_processes)

    def _treat(self, fault: Fault, cure: Cure) -> None:
        self._tell(fault, cure)
        if cure is Cure.RESTART:
            self._consumer.hub.call_soon(_lose_the_connection)
        else:
            self._end()


def unstarted() -> Sequence[tuple[Any, ...]]:
    """Arguments of the polls this process took from the broker and did not begin."""
    known = tuple(state.requests.values())
    return [
        tuple(each.args)
        for each in known
        if each.name == "poller.poll" and each not in state.active_requests
    ]


def _lose_the_connection() -> None:
    """On Celery's loop: it closes everything and connects anew, which it does well."""
    raise ConnectionResetError("the consumer stood still: starting it again")
