"""Threads for the blocking calls of collectors: each collector has a pool of its own.

The pools are the loop's default executor. A call that goes on after its poll was cut off is stuck:
it is logged and its thread is replaced, up to a limit. At the limit an incident is recorded.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from poller.collectors import misbehaviour_log
from poller.domain.failures.quarantine import Cause
from poller.workers.guard import running_code
from poller.workers.guard.collector_incidents import CollectorIncidents
from poller.workers.guard.running_code import RunningPoll, ThreadMarks

#: A call that runs this long after its poll was cut off counts as stuck.
GRACE_S = 0.5
#: A thread without work ends after this long.
IDLE_S = 30.0


@dataclass(frozen=True, slots=True)
class ThreadLimits:
    """Limits for each collector in each process."""

    threads: int  # at work at a time
    stuck: int  # replaced while they are stuck


class CollectorThreads(ThreadPoolExecutor):
    """Runs the calls of `asyncio.to_thread`, each in the pool of its collector."""

    def __init__(
        self,
        limits: ThreadLimits,
        marks: ThreadMarks,
        collector_of: Callable[[int], str],
        incidents: CollectorIncidents,
    ) -> None:
        super().__init__(1)  # the threads of the base class are never started
        self._limits = limits
        self._marks = marks
        self._collector_of = collector_of
        self._incidents = incidents
        self._pools: dict[str, _CollectorPool] = {}
        self._lock = threading.Lock()

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        poll = running_code.current_poll()
        collector = self._collector_of(poll.batch_number) if poll else ""
        pool = self._pool(collector)

        bound_call = partial(call, *args, **kwargs)
        return pool.submit(_BlockingCall(poll, bound_call, pool))

    def _pool(self, collector: str) -> _CollectorPool:
        with self._lock:
            pool = self._pools.get(collector)
            if pool is None:
                pool = _CollectorPool(collector, self._limits, self._marks, self._incidents)
                self._pools[collector] = pool

            return pool

    def stuck(self) -> dict[str, int]:
        """Return the number of stuck threads by collector."""
        counts = {}
        with self._lock:
            for name, pool in self._pools.items():
                if pool.stuck:
                    counts[name] = len(pool.stuck)
        return counts


class _BlockingCall(Future[Any]):
    """A call in a thread. The loop cancels it when the poll that waits for it is cut off."""

    def __init__(
        self, poll: RunningPoll | None, call: Callable[[], Any], pool: _CollectorPool
    ) -> None:
        super().__init__()
        self.poll = poll
        self.thread_id = 0
        self._call = call
        self._pool = pool

    def run(self) -> None:
        if not self.set_running_or_notify_cancel():
            return
        self.thread_id = threading.get_ident()
        try:
            result = self._call()
        except BaseException as error:  # noqa: BLE001  door: a collector's call, SystemExit too
            self.set_exception(error)
            del self  # this frame lives as long as the exception, which this future holds
        else:
            self.set_result(result)

    def cancel(self) -> bool:
        is_cancelled = super().cancel()
        if not is_cancelled and self.running():
            with suppress(RuntimeError):  # no loop: asyncio passes a cancellation on from its loop
                loop = asyncio.get_running_loop()
                loop.call_later(GRACE_S, self._pool.replace_if_stuck, self)
        return is_cancelled


class _CollectorPool:
    """The threads of one collector, started on demand and ended after a time without work."""

    def __init__(
        self,
        collector: str,
        limits: ThreadLimits,
        marks: ThreadMarks,
        incidents: CollectorIncidents,
    ) -> None:
        self.stuck: set[_BlockingCall] = set()
        self._collector = collector
        self._limits = limits
        self._marks = marks
        self._incidents = incidents

        self._waiting: deque[_BlockingCall] = deque()
        self._running: set[_BlockingCall] = set()
        self._idle = 0
        self._changed = threading.Condition()

    def submit(self, call: _BlockingCall) -> _BlockingCall:
        """Queue a call, and wake or start a thread for it."""
        with self._changed:
            self._waiting.append(call)
            self._wake_or_start_thread()
        return call

    def replace_if_stuck(self, call: _BlockingCall) -> None:
        """Replace the thread of a call that was cut off and still runs, within the limit."""
        with self._changed:
            if call.done() or call not in self._running:
                return
            is_replaced = len(self.stuck) < self._limits.stuck
            if is_replaced:
                self._running.discard(call)
                self.stuck.add(call)
                self._wake_or_start_thread()
            count = len(self.stuck)

        location = running_code.thread_location(call.thread_id)
        misbehaviour_log.stuck_thread(self._collector, location, count)
        if is_replaced and count == self._limits.stuck:
            text = f"{count} of its threads hang in one worker"
            self._incidents.record(self._collector, Cause.STUCK, text)

    def _wake_or_start_thread(self) -> None:
        available = self._limits.threads - len(self._running)
        if not self._waiting or available <= 0:
            return

        self._changed.notify()
        needed = min(available, len(self._waiting))
        if self._idle < needed:
            with suppress(RuntimeError):  # the system has no more threads: the call waits
                name = f"blocking-{self._collector}"
                threading.Thread(target=self._run_calls, name=name, daemon=True).start()
                self._idle += 1  # a new thread counts as idle until it takes a call

    def _run_calls(self) -> None:
        while True:
            call = self._take()
            if call is None:
                return

            with self._marks.marked(call.poll):
                call.run()
            with self._changed:
                self._running.discard(call)
                self.stuck.discard(call)
                self._idle += 1

    def _take(self) -> _BlockingCall | None:
        """Wait for a call. The calling thread counts as idle; it ends after None."""
        with self._changed:
            is_ready = self._changed.wait_for(self._has_work, IDLE_S)
            self._idle -= 1
            if not is_ready:
                return None

            call = self._waiting.popleft()
            self._running.add(call)
            self._wake_or_start_thread()
            return call

    def _has_work(self) -> bool:
        """Whether a call waits and the limit allows one more thread at work."""
        has_room = len(self._running) < self._limits.threads
        return has_room and bool(self._waiting)
